import type { Histogram } from './histogram.ts'

/** What a store tells of its writes, for the metrics. */
export interface StoreActivity {
  /** Writes that wait or are being committed now. */
  readonly writesWaiting: number
  /** How many writes went into one commit. */
  readonly commitSizes: Histogram
}
