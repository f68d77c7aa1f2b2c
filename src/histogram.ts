/** Counts of observed values by upper bound, as a Prometheus histogram. */
export class Histogram {
  readonly bounds: readonly number[]
  /** Not cumulative. One more entry than `bounds`, for values above the last bound. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let index = 0
    while (index < this.bounds.length && value > (this.bounds[index] ?? 0)) index++
    this.counts[index] = (this.counts[index] ?? 0) + 1
    this.sum += value
  }
}
