import { describe, expect, test } from 'bun:test'
import { command, parseArguments, readOptions, setting, switchOption } from './arguments.ts'
import { UsageError } from './output.ts'

const digit = (text: string) => (/^\d$/.test(text) ? Number(text) : undefined)
const options = {
  times: setting('TIMES', '--times <number>', '1', { help: 'How often', expected: 'a digit', read: digit }),
  food: { flag: '--food <name>', help: 'What', expected: 'food', default: 'none', optional: true, read: String },
  name: { flag: '--name, -n <name>', help: 'Who', expected: 'a name', read: (text: string) => text || undefined },
  quiet: switchOption('--quietly, -q', 'Without a word'),
} as const satisfies Parameters<typeof readOptions>[0]['options']

const feed = command({
  name: 'feed',
  summary: 'Feed an animal',
  arguments: [
    { name: 'animal', help: 'the name of an animal' },
    { name: 'food', help: 'its food', optional: true },
  ],
  options,
  examples: [],
  run: async () => 0,
})
const parse = (args: readonly string[]) => parseArguments(feed, args, 'petstore')

test.each<[string[], Record<string, string>, string[]]>([
  [['Rex'], {}, ['Rex']],
  [['Rex', 'meat'], {}, ['Rex', 'meat']],
  [['--times', '2', 'Rex'], { '--times': '2' }, ['Rex']],
  [['Rex', '-q'], { '--quietly': 'true' }, ['Rex']],
  [['Rex', '--times=2', '--quietly'], { '--times': '2', '--quietly': 'true' }, ['Rex']],
  [['Rex', '--times', '1', '--times', '2'], { '--times': '2' }, ['Rex']],
  [['Rex', '--times', ''], { '--times': '' }, ['Rex']],
  [['Rex', '--times='], { '--times': '' }, ['Rex']],
  [['Rex', '--times=a b=c\nd'], { '--times': 'a b=c\nd' }, ['Rex']],
  [['Rex', '--times', '-9223372036854775808'], { '--times': '-9223372036854775808' }, ['Rex']],
  [['Rex', '-n', 'Ada', '-q'], { '--name': 'Ada', '--quietly': 'true' }, ['Rex']],
  [['Rex', '-nAda'], { '--name': 'Ada' }, ['Rex']],
  [['Rex', '-n=Ada'], { '--name': 'Ada' }, ['Rex']],
  [['Rex', '-n='], { '--name': '' }, ['Rex']],
  [['-', '-1'], {}, ['-', '-1']],
  [['--', '--times', '-x'], {}, ['--times', '-x']],
])('%p is read', (args, flags, values) => {
  expect(parse(args)).toEqual({ flags, values })
})

describe('refused, without showing a value:', () => {
  test.each([
    [[], '<animal> is missing: expected the name of an animal'],
    [[''], '<animal> is empty: expected the name of an animal'],
    [['Rex', ''], '<food> is empty: expected its food'],
    [['Rex', 'meat', 'secret'], 'Too many arguments: expected petstore feed <animal> [food] [options]'],
    [['Rex', '--tiems', 'secret'], 'Unknown option --tiems: did you mean --times?'],
    [['Rex', '--tiems=secret'], 'Unknown option --tiems: did you mean --times?'],
    [['Rex', '--constructor'], 'Unknown option --constructor: petstore feed --help lists the options'],
    [['Rex', '-tsecret'], 'Unknown option -t: petstore feed --help lists the options'],
    [['Rex', '--times'], '--times has no value: expected --times <number>'],
    [['Rex', '--times', '--quietly'], '--times has no value: expected --times <number>'],
    [['Rex', '--quietly=secret'], '--quietly takes no value: remove it'],
    [['Rex', '-qsecret'], '--quietly takes no value: remove it'],
    [['Rex', '-n'], '--name has no value: expected --name, -n <name>'],
  ])('%p', (args, problem) => {
    expect(() => parse(args)).toThrow(new UsageError(problem))
  })
})

describe('options', () => {
  test.each([
    [{}, {}, { times: 1, food: undefined, quiet: false }],
    [{ '--times': '2', '--food': '', '--quietly': 'true' }, { TIMES: 'x' }, { times: 2, food: '', quiet: true }],
    [{}, { TIMES: '3' }, { times: 3, food: undefined, quiet: false }],
    [{}, { TIMES: '' }, { times: 1, food: undefined, quiet: false }],
  ])('%p and %p are read as %p', (flags, env, values) => {
    expect<unknown>(readOptions({ options }, { '--name': 'Rex', ...flags }, env)).toEqual({ name: 'Rex', ...values })
  })

  test('contradictions are reported with the other problems', () => {
    const check = (_: unknown, isGiven: (name: 'food' | 'quiet') => boolean) =>
      isGiven('quiet') && !isGiven('food') ? ['--quietly needs --food'] : []
    const read = (flags: Record<string, string>) => readOptions({ options, check }, { '--name': 'Rex', ...flags }, {})
    expect(() => read({ '--quietly': 'true', '--times': 'x' })).toThrow(
      new UsageError('--times is "x": expected a digit', '--quietly needs --food'),
    )
    expect(read({}).quiet).toBe(false)
  })

  test('all problems are reported, a password not shown', () => {
    const read = () => readOptions({ options }, { '--name': '' }, { TIMES: 'x://me:secret@y' })
    expect(read).toThrow(new UsageError('TIMES is "x://…@y": expected a digit', '--name is "": expected a name'))
    expect(() => readOptions({ options }, {}, {})).toThrow(new UsageError('--name is missing: expected a name'))
  })
})
