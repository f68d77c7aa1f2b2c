import { expect, test } from 'bun:test'
import { readCommand } from './arguments.ts'
import { argument, command, setting, switchOption } from './command.ts'

const text = { expected: 'a text', read: (text: string) => text }
const digit = (text: string) => (/^\d$/.test(text) ? Number(text) : undefined)
const feed = command({
  name: 'feed',
  summary: 'Feed an animal',
  options: {
    animal: argument('animal', 'the name of an animal'),
    food: { ...argument('food', 'its food'), otherwise: 'none' },
    times: setting('times', 'TIMES', '1', { value: 'number', help: 'How often', expected: 'a digit', read: digit }),
    name: { name: 'name', alias: 'called', short: 'n', value: 'name', help: 'Who', ...text },
    quiet: switchOption('quietly', 'Without a word', 'q'),
  },
  examples: [],
  check: (_, isGiven) => (isGiven('quiet') && !isGiven('food') ? ['--quietly needs <food>'] : []),
  run: async () => 0,
})
const read = (args: readonly string[], env: Record<string, string> = {}) =>
  readCommand(feed, args, { env, program: 'petstore' })
const given = { animal: 'Rex', food: undefined, times: 1, name: 'Ada', quiet: false }

test.each<[string[], object]>([
  [['Rex', '--name', 'Ada'], {}],
  [['Rex', '-n', 'Ada', 'meat', '--times=2', '-q'], { food: 'meat', times: 2, quiet: true }],
  [['Rex', '--times', '1', '--name=Ida', '--called', 'Ada', '--times', '2'], { times: 2 }],
  [['Rex', '-nAda'], {}],
  [['Rex', '-n='], { name: '' }],
  [['Rex', '--name=a b=c\nd'], { name: 'a b=c\nd' }],
  [['Rex', '--name', '-9223372036854775808'], { name: '-9223372036854775808' }],
  [['-n', 'Ada', '-', '-1'], { animal: '-', food: '-1' }],
  [['-n', 'Ada', '--', '--times', '-x'], { animal: '--times', food: '-x' }],
])('%j is read', (args, values) => {
  expect<unknown>(read(args)).toEqual({ values: { ...given, ...values }, problems: [] })
})

test.each<[Record<string, string>, string[], number]>([
  [{ TIMES: '3' }, [], 3],
  [{ TIMES: '' }, [], 1],
  [{ TIMES: 'x' }, ['--times', '2'], 2],
])('with %j and the flags %j, it is done %d times', (env, flags, times) => {
  expect<unknown>(read(['Rex', '-n', 'Ada', ...flags], env)).toEqual({ values: { ...given, times }, problems: [] })
})

const usage = 'expected petstore feed <animal> [food] --name <name> [options]'
const lists = 'petstore feed --help lists the options'

test.each<[string[], ...problems: string[]]>([
  [[], '<animal> is missing: expected the name of an animal', '--name is missing: expected a text'],
  [['', '', '-nx'], '<animal> is empty: expected the name of an animal', '<food> is empty: expected its food'],
  [['Rex', 'meat', 'milk', 'fish'], 'Unexpected argument "milk": did you mean --name milk?'],
  [['Rex', 'meat', 'milk', '-n', 'Ada'], `Unexpected argument "milk": ${usage}`],
  ...[
    'a-secret-key-0123',
    'pets_secret',
    'me:secret@a',
    'postgres://db/pets?password=secret',
    'host=db password=secret',
  ].map((text): [string[], string] => [['Rex', 'meat', text], `Too many arguments: ${usage}`]),
  [['Rex', '--constructor'], `Unknown option --constructor: ${lists}`],
  [['-tsecret'], `Unknown option -t: ${lists}; type an argument that begins with a dash at the end, after --`],
  [['Rex', '--times'], '--times has no value: expected --times <number>'],
  [['Rex', '-n', '--'], '--name has no value: expected --name, --called, -n <name>'],
  [['Rex', '-qsecret'], '--quietly takes no value: remove it'],
  [['Rex', '-nx', '-q', '--times=//me:secret@y'], '--times is "//…@y": expected a digit', '--quietly needs <food>'],
])('%j: every problem is reported, without a secret', (args, ...problems) => {
  expect(read(args).problems).toEqual(problems)
})

// The value may be an argument or belong to the option, and the option may be the one that is missing.
test.each<[string[], string]>([
  [['--naem', 'Ada'], 'Unknown option --naem: did you mean --name?'],
  [['Rex', 'meat', '--tiems', 'secret'], 'Unknown option --tiems: did you mean --times?'],
  [['--name', '--quietly', 'Rex'], '--name has no value: expected --name, --called, -n <name>'],
])('%j and invalid settings are reported together, and nothing that follows from the first', (args, problem) => {
  expect(read([...args, '-q'], { TIMES: 'x' }).problems).toEqual([problem, 'TIMES is "x": expected a digit'])
})
