/** How often a value fell below each of some bounds, their number and their sum: what Prometheus calls a histogram. */
export interface Histogram {
  readonly bounds: readonly number[]
  /** One more than there are bounds: the last is for what lies above all of them. Not cumulative. */
  readonly counts: readonly number[]
  readonly sum: number
  observe(value: number): void
}

export function createHistogram(bounds: readonly number[]): Histogram {
  const counts = new Array<number>(bounds.length + 1).fill(0)
  let sum = 0
  return {
    bounds,
    counts,
    get sum() {
      return sum
    },
    observe(value) {
      let index = 0
      while (index < bounds.length && value > (bounds[index] ?? 0)) index++
      counts[index] = (counts[index] ?? 0) + 1
      sum += value
    },
  }
}
