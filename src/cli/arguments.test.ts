import { describe, expect, test } from 'bun:test'
import { type Command, parseArguments } from './arguments.ts'
import { UsageError } from './output.ts'

const command: Command = {
  name: 'feed',
  summary: 'Feed an animal',
  arguments: [
    { name: 'animal', help: 'the name of an animal' },
    { name: 'food', help: 'its food', optional: true },
  ],
  options: [
    { flag: '--times <number>', help: 'How often' },
    { flag: '--quietly', help: 'Without a word' },
  ],
  examples: [],
  run: async () => 0,
}
const parse = (args: readonly string[]) => parseArguments(command, args, 'petstore')

test.each<[string[], Record<string, string>, string[]]>([
  [['Rex'], {}, ['Rex']],
  [['Rex', 'meat'], {}, ['Rex', 'meat']],
  [['--times', '2', 'Rex'], { '--times': '2' }, ['Rex']],
  [['Rex', '--times=2', '--quietly'], { '--times': '2', '--quietly': 'true' }, ['Rex']],
  [['Rex', '--times', '1', '--times', '2'], { '--times': '2' }, ['Rex']],
  [['Rex', '--times', ''], { '--times': '' }, ['Rex']],
  [['Rex', '--times='], { '--times': '' }, ['Rex']],
  [['Rex', '--times=a b=c\nd'], { '--times': 'a b=c\nd' }, ['Rex']],
  [['Rex', '--times', '-9223372036854775808'], { '--times': '-9223372036854775808' }, ['Rex']],
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
    [['Rex', '-t'], 'Unknown option -t: petstore feed --help lists the options'],
    [['Rex', '--times'], '--times has no value: expected --times <number>'],
    [['Rex', '--times', '--quietly'], '--times has no value: expected --times <number>'],
    [['Rex', '--quietly=secret'], '--quietly takes no value: remove it'],
  ])('%p', (args, problem) => {
    expect(() => parse(args)).toThrow(new UsageError(problem))
  })
})
