import type { Driver } from '../load/driver.ts'
import type { Progress } from './progress.ts'
import type { Session } from './session.ts'

/** How much a run takes upon itself, and what it works with. */
export interface Effort {
  readonly rounds: number
  /** For each load. */
  readonly seconds: number
  /** Before anything is timed, for code that is compiled as it runs: Node takes some seconds over it. */
  readonly warmingSeconds: number
  readonly quick: boolean
  readonly session: Session
  readonly driver: Driver
  readonly progress: Progress
}
