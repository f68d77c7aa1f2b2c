// `npm run bench`: what care costs and gains, as ratios between servers that are measured in one run.
import { compareCommits } from './commits.ts'
import { compareLogging } from './logging.ts'

export interface Effort {
  readonly rounds: number
  readonly seconds: number
  /** A line for whoever waits. */
  progress(line: string): void
}

async function main(args: readonly string[]): Promise<number> {
  if (!Bun.which('wrk')) {
    process.stderr.write('petstore bench: wrk is not installed; install the package wrk of your system\n')
    return 1
  }
  const quick = args.includes('--quick')
  const effort: Effort = {
    rounds: quick ? 1 : 5,
    seconds: quick ? 2 : 4,
    progress: line => process.stderr.write(`${line}\n`),
  }
  for (const compare of [compareCommits, compareLogging]) {
    for (const line of await compare(effort)) process.stdout.write(`${line}\n`)
  }
  return 0
}

process.exitCode = await main(process.argv.slice(2))
