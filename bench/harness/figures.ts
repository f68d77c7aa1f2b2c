/** The middle of some rounds, and how far they lie apart. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  const [below, above] = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]]
  return below === undefined || above === undefined ? Number.NaN : (below + above) / 2
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), low: Math.min(...values), high: Math.max(...values) }
}

/** `4.04 (3.10 to 4.57)`; a single round has no spread. */
export function showSpread({ median, low, high }: Spread): string {
  const show = (value: number) => value.toFixed(value >= 100 ? 0 : 2)
  return low === high ? show(median) : `${show(median)} (${show(low)} to ${show(high)})`
}

/** One ratio for each round: both sides met the machine in the same state. */
export function ratios(of: readonly number[], to: readonly number[]): Spread | undefined {
  const rounds = Math.min(of.length, to.length)
  if (rounds === 0) return undefined
  return spreadOf(of.slice(0, rounds).map((value, round) => value / (to[round] ?? Number.NaN)))
}

/** Figures of a run with failed requests mean nothing. */
export function refuseFailures(measured: readonly { readonly failures: number }[]): void {
  const failures = measured.reduce((sum, each) => sum + each.failures, 0)
  if (failures > 0) throw new Error(`${failures} requests failed: these figures mean nothing`)
}
