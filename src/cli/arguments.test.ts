import { describe, expect, test } from 'bun:test'
import { argument, command, readValues, setting, splitArguments, switchOption } from './arguments.ts'

const digit = (text: string) => (/^\d$/.test(text) ? Number(text) : undefined)
const options = {
  animal: argument('<animal>', 'the name of an animal'),
  food: { ...argument('<food>', 'its food'), default: 'none', optional: true },
  times: setting('TIMES', '--times <number>', '1', { help: 'How often', expected: 'a digit', read: digit }),
  name: {
    flag: '--name, --called, -n <name>',
    help: 'Who',
    expected: 'a name',
    read: (text: string) => text || undefined,
  },
  quiet: switchOption('--quietly, -q', 'Without a word'),
} as const satisfies Parameters<typeof readValues>[0]['options']

const feed = command({ name: 'feed', summary: 'Feed an animal', options, examples: [], run: async () => 0 })
const split = (args: readonly string[]) => splitArguments(feed, args, 'petstore')

test.each<[string[], Record<string, string>, string[]]>([
  [['Rex'], {}, ['Rex']],
  [['Rex', 'meat'], {}, ['Rex', 'meat']],
  [['--times', '2', 'Rex'], { '--times': '2' }, ['Rex']],
  [['Rex', '--times=2', '--quietly'], { '--times': '2', '--quietly': 'true' }, ['Rex']],
  [['Rex', '--times', '1', '--times', '2'], { '--times': '2' }, ['Rex']],
  [['Rex', '--times', ''], { '--times': '' }, ['Rex']],
  [['Rex', '--times=a b=c\nd'], { '--times': 'a b=c\nd' }, ['Rex']],
  [['Rex', '--times', '-9223372036854775808'], { '--times': '-9223372036854775808' }, ['Rex']],
  [['Rex', '-n', 'Ada', '-q'], { '--name': 'Ada', '--quietly': 'true' }, ['Rex']],
  [['Rex', '-nAda'], { '--name': 'Ada' }, ['Rex']],
  [['--called', 'Ada', 'Rex'], { '--name': 'Ada' }, ['Rex']],
  [['Rex', '--name=Ida', '--called=Ada'], { '--name': 'Ada' }, ['Rex']],
  [['Rex', '-n='], { '--name': '' }, ['Rex']],
  [['Rex', '-n', '-q'], { '--name': '-q' }, ['Rex']],
  [['Rex', '-n-5'], { '--name': '-5' }, ['Rex']],
  [['Rex', '--times', '-'], { '--times': '-' }, ['Rex']],
  [['-', '-1'], {}, ['-', '-1']],
  [['-5n', 'Ada'], {}, ['-5n', 'Ada']],
  [['Rex', '--', '-5'], {}, ['Rex', '-5']],
  [['--', '--times', '-x'], {}, ['--times', '-x']],
])('%p is read', (args, flags, [animal, food]) => {
  expect<unknown>(split(args)).toEqual({ texts: { ...flags, '<animal>': animal, '<food>': food }, problems: [] })
})

describe('refused, without showing a secret:', () => {
  const usage = '<animal> [food] --name <name> [options]'
  test.each<[string[], string]>([
    [[], '<animal> is missing: expected the name of an animal'],
    [[''], '<animal> is empty: expected the name of an animal'],
    [['Rex', ''], '<food> is empty: expected its food'],
    [['Rex', 'meat', 'milk', 'fish'], 'Unexpected argument "milk": did you mean --name milk?'],
    [['Rex', 'meat', "Ada's", '-q'], `Unexpected argument "Ada's": did you mean --name 'Ada'\\''s'?`],
    [['Rex', 'meat', 'milk', '-n', 'Ada'], `Unexpected argument "milk": expected petstore feed ${usage}`],
    [['Rex', 'meat', 'http://me:secret@a'], `Unexpected argument "http://…@a": expected petstore feed ${usage}`],
    ...[
      ...['a-secret-key-0123', 'a.secret-key-0123456', 'Bearer a-secret-key-0123', 'pets_secret', 'me:secret'],
      ...['me:secret@a', 'postgres://db/pets?password=secret', 'host=db password=secret'],
    ].map((text): [string[], string] => [['Rex', 'meat', text], `Too many arguments: expected petstore feed ${usage}`]),
    [['Rex', '--tiems', 'secret'], 'Unknown option --tiems: did you mean --times?'],
    [['Rex', '--constructor'], 'Unknown option --constructor: petstore feed --help lists the options'],
    [['Rex', '--__proto__', 'secret'], 'Unknown option --__proto__: petstore feed --help lists the options'],
    [
      ['Rex', '-tsecret'],
      'Unknown option -t: petstore feed --help lists the options; for an argument that begins with a dash, type petstore feed --name <name> [options] -- <animal> [food]',
    ],
    [['Rex', '--times'], '--times has no value: expected --times <number>'],
    [['Rex', '--times', '--'], '--times has no value: expected --times <number>'],
    [['Rex', '--quietly=secret'], '--quietly takes no value: remove it'],
    [['Rex', '-qsecret'], '--quietly takes no value: remove it'],
    [['Rex', '-qn', 'Ada'], '--quietly takes no value: remove it'],
    [['Rex', '-n'], '--name has no value: expected --name, --called, -n <name>'],
  ])('%p', (args, problem) => {
    expect(split(args).problems).toEqual([problem])
  })
})

describe('options', () => {
  const check = (_: unknown, isGiven: (name: 'food' | 'quiet') => boolean) =>
    isGiven('quiet') && !isGiven('food') ? ['--quietly needs <food>'] : []
  const read = (line: string, env: Record<string, string> = {}) => {
    const { texts } = split(['Rex', ...line.split(' ').filter(Boolean)])
    return readValues({ options, check }, texts, env)
  }

  test.each([
    ['-n Ada', {}, { times: 1, quiet: false }],
    ['-n Ada meat --times 2 -q', { TIMES: 'x' }, { times: 2, food: 'meat', quiet: true }],
    ['-n Ada', { TIMES: '3' }, { times: 3, quiet: false }],
    ['-n Ada', { TIMES: '' }, { times: 1, quiet: false }],
  ])('%p and %p are read as %p', (line, env, values) => {
    expect<unknown>(read(line, env)).toEqual({ values: { animal: 'Rex', name: 'Ada', ...values }, problems: [] })
  })

  test.each<[string, Record<string, string>, ...problems: string[]]>([
    ['', {}, '--name is missing: expected a name'],
    ['--name=', { TIMES: 'x://me:secret@y' }, 'TIMES is "x://…@y": expected a digit', '--name is "": expected a name'],
    ['-n Ada -q --times x', {}, '--times is "x": expected a digit', '--quietly needs <food>'],
  ])('%p and %p: all problems are reported, a password not shown', (line, env, ...problems) => {
    expect(read(line, env).problems).toEqual(problems)
  })
})
