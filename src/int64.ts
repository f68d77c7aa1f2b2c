export const int64Min = -(2n ** 63n)
export const int64Max = 2n ** 63n - 1n

const canonical = /^(?:0|-?[1-9][0-9]{0,18})$/

/** Reads an int64 in its canonical decimal form: no plus sign, no leading zero, no fraction. */
export function parseInt64(text: string): bigint | undefined {
  return canonical.test(text) ? inRange(BigInt(text)) : undefined
}

/** The exact int64 of a value from `readJson`: `1`, `1.0` and `1e3` are integers, `"1"` is not. */
export function readInt64(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return inRange(value)
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
  return value instanceof InexactNumber ? readDigits(value.source) : undefined
}

function inRange(value: bigint): bigint | undefined {
  return value >= int64Min && value <= int64Max ? value : undefined
}

/** Reads the digits of a JSON number without converting it to a double. */
function readDigits(source: string): bigint | undefined {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source)
  if (!parts) return undefined
  const [, sign, whole = '', fraction = '', exponent = '0'] = parts
  const digits = (whole + fraction).replace(/^0+/, '')
  // Without the look-behind, long runs of zeros before the end would take quadratic time.
  const significant = digits.replace(/(?<=[1-9])0+$/, '')
  if (significant === '') return 0n
  const zeros = digits.length - significant.length - fraction.length + Number(exponent)
  // Check the length first: a huge exponent must not be expanded into digits.
  if (zeros < 0 || significant.length + zeros > 19) return undefined
  return inRange(BigInt(`${sign}${significant}${'0'.repeat(zeros)}`))
}

/** A JSON number that a double may not hold exactly, as its source text. */
export class InexactNumber {
  readonly source: string
  constructor(source: string) {
    this.source = source
  }
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof InexactNumber)
}
