import { parseArgs } from 'node:util'
import { contenders } from './contenders.ts'

export const parts = ['peers', 'threads', 'postgres', 'transfer', 'slow-disk', 'growth'] as const
export type Part = (typeof parts)[number]
const contenderNames = contenders.map(({ name }) => name)

export interface Options {
  readonly quick: boolean
  readonly write: boolean
  /** Only write the page again, from recorded.json. */
  readonly page: boolean
  readonly rounds: number
  readonly seconds: number
  readonly only: readonly string[]
  readonly parts: readonly Part[]
}

export const usage = `Measures the petstore against other servers.

Usage: npm run bench -- [options]

  --quick           1 round of 1 s for each load, without the largest catalogue; about 3 minutes
  --rounds <n>      rounds (default 5)
  --seconds <n>     seconds for each load (default 2)
  --only <names>    only these contenders, separated by commas: ${contenderNames.join(', ')}
  --part <names>    only these parts: ${parts.join(', ')}
  --write           also write the results of a quick or partial run; other parts keep their recorded figures
  --page            measure nothing; write docs/benchmarks.md again from bench/recorded.json

A full run writes docs/benchmarks.md, its chart and bench/recorded.json.
`

/** Throws if an argument is invalid. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      page: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      part: { type: 'string' },
    },
  })
  const { quick, page, only, part } = values
  return {
    quick,
    page,
    write: values.write || !(quick || only || part),
    rounds: readCount('--rounds', values.rounds ?? (quick ? '1' : '5')),
    seconds: readCount('--seconds', values.seconds ?? (quick ? '1' : '2')),
    only: only === undefined ? contenderNames : readNames('--only', only, contenderNames),
    parts: part === undefined ? parts : readNames('--part', part, parts),
  }
}

function readCount(flag: string, text: string): number {
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text)
  throw new Error(`${flag} is "${text}": expected an integer from 1 to 999`)
}

function readNames<T extends string>(flag: string, text: string, known: readonly T[]): readonly T[] {
  return text.split(',').map(name => {
    const found = known.find(each => each === name)
    if (found === undefined) throw new Error(`${flag} is "${name}": expected one of ${known.join(', ')}`)
    return found
  })
}
