import type { ClientWalk } from '../comparisons/client.ts'
import type { Commits } from '../comparisons/commits.ts'
import type { Growth } from '../comparisons/growth.ts'
import type { Seen } from '../comparisons/peers.ts'
import type { OnPostgres } from '../comparisons/postgres.ts'
import type { SlowDisk } from '../comparisons/slow-disk.ts'
import type { Step } from '../comparisons/steps.ts'
import type { Machine } from '../harness/machine.ts'

/** Everything that one run has seen. What was not measured is absent. */
export interface Outcome {
  readonly at: Date
  readonly rounds: number
  readonly seconds: number
  readonly quick: boolean
  readonly driver: string
  readonly machine: Machine
  readonly peers: readonly Seen[]
  readonly postgres?: readonly OnPostgres[] | undefined
  readonly growth?: Growth | undefined
  readonly slowDisk?: SlowDisk | undefined
  readonly commits?: Commits | undefined
  readonly steps?: readonly Step[] | undefined
  readonly client?: readonly ClientWalk[] | undefined
}

export function seenOf({ peers }: Pick<Outcome, 'peers'>, name: string): Seen | undefined {
  return peers.find(({ contender }) => contender.name === name)
}
