/** The median of some rounds, the lowest and the highest. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2
}

export function spreadOf(values: readonly number[]): Spread | undefined {
  if (values.length === 0 || values.some(Number.isNaN)) return undefined
  return { median: median(values), low: Math.min(...values), high: Math.max(...values) }
}

export const none = '–'

export const whole = (value: number | null | undefined) =>
  value == null ? none : Math.round(value).toLocaleString('en')

/** Three significant digits, or more for large values. */
export function show(value: number | null | undefined): string {
  if (value == null || value >= 100) return whole(value)
  return value.toFixed(value < 10 ? 2 : 1)
}

/** `5.88 (4.22–6.92)`: the median, the lowest and the highest round. */
export function showSpread(spread: Spread | undefined): string {
  if (!spread) return none
  const { median, low, high } = spread
  return low === high ? show(median) : `${show(median)} (${show(low)}–${show(high)})`
}

/** In Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return 'Not measured.'
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|---|${'--:|'.repeat(head.length - 1)}`, ...rows.map(line)].join('\n')
}

/** Colours of charts, on a light and on a dark page. */
export const chartStyle = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .paper { fill: #fff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .paper { fill: #0d1117 }
  }`
