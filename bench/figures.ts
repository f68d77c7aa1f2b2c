export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** `4.04 (3.10 to 4.57)`: the median and how far the rounds lie apart. */
export function spread(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  return `${median(values).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`
}

/** Figures of a run with failed requests mean nothing. */
export function refuseFailures(measured: readonly { readonly failures: number }[]): void {
  const failures = measured.reduce((sum, each) => sum + each.failures, 0)
  if (failures > 0) throw new Error(`${failures} requests failed: these figures mean nothing`)
}
