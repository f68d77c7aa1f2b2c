import { parseArgs } from 'node:util'
import { lineUp } from './contenders/line-up.ts'

const parts = ['peers', 'postgres', 'growth', 'slow-disk', 'commits', 'steps', 'client'] as const
export type Part = (typeof parts)[number]

export interface Options {
  readonly quick: boolean
  /** Writes the document, its charts and the record. */
  readonly write: boolean
  readonly rounds: number
  readonly seconds: number
  /** Names of contenders; the petstore is always among them. */
  readonly only: readonly string[] | undefined
  readonly parts: readonly Part[]
}

export const usage = `Usage: npm run bench -- [options]

  --quick           one round of one second each, without the largest catalogue: under two minutes
  --rounds <n>      how often everything is measured (5)
  --seconds <n>     how long each load lasts (3)
  --only <names>    only these contenders, separated by commas: ${lineUp.map(({ name }) => name).join(', ')}
  --part <names>    only these parts: ${parts.join(', ')}
  --write           write docs/benchmarks.md, its charts and bench/recorded.json also after a quick or partial run

A full run writes them anyway.
`

/** Throws where the command line cannot be understood. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      part: { type: 'string' },
    },
  })
  const { quick, only, part } = values
  return {
    quick,
    write: values.write || !(quick || only || part),
    rounds: count('--rounds', values.rounds, quick ? 1 : 5),
    seconds: count('--seconds', values.seconds, quick ? 1 : 3),
    only:
      only === undefined
        ? undefined
        : namesIn(
            '--only',
            only,
            lineUp.map(({ name }) => name),
          ),
    parts: part === undefined ? parts : namesIn('--part', part, parts),
  }
}

function count(flag: string, given: string | undefined, otherwise: number): number {
  if (given === undefined) return otherwise
  if (/^[1-9]\d{0,2}$/.test(given)) return Number(given)
  throw new Error(`Cannot read ${flag} "${given}": expected a whole number from 1 to 999`)
}

function namesIn<T extends string>(flag: string, given: string, known: readonly T[]): readonly T[] {
  return given.split(',').map(name => {
    const found = known.find(each => each === name)
    if (found === undefined)
      throw new Error(`Cannot read ${flag} "${name}": expected one of ${known.join(', ')}`)
    return found
  })
}
