import type { Field } from './field.ts'
import { InexactNumber } from './json.ts'

export const int64Min = -(2n ** 63n)
export const int64Max = 2n ** 63n - 1n

const canonical = /^(?:0|-?[1-9][0-9]{0,18})$/

/** The one decimal spelling of an int64: no plus sign, no leading zero, no fraction. */
export function parseInt64(text: string): bigint | undefined {
  if (!canonical.test(text)) return undefined
  return inRange(BigInt(text))
}

/** A JSON integer of any spelling (`1`, `1.0`, `1e3`), exact over the whole range. */
export const int64: Field<bigint> = {
  schema: { type: 'integer', format: 'int64' },
  expected: `a whole number from ${int64Min} to ${int64Max}`,
  read(value) {
    if (typeof value === 'bigint') return inRange(value)
    if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
    if (value instanceof InexactNumber) return integerOf(value.source)
    return undefined
  },
}

function inRange(value: bigint): bigint | undefined {
  return value >= int64Min && value <= int64Max ? value : undefined
}

/** Reads a JSON number's own digits, so that nothing passes through a double. */
function integerOf(source: string): bigint | undefined {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source)
  if (!parts) return undefined
  const [, sign, whole = '', fraction = '', exponent = '0'] = parts
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.slice(0, lengthWithoutZeros(digits))
  if (significant === '') return 0n
  const zeros = digits.length - significant.length - fraction.length + Number(exponent)
  // More than 19 digits lie outside the range: decided before a huge exponent is written out.
  if (zeros < 0 || significant.length + zeros > 19) return undefined
  return inRange(BigInt(`${sign}${significant}${'0'.repeat(zeros)}`))
}

/** A loop, because /0+$/ would take quadratic time over a long run of zeros that is not at the end. */
function lengthWithoutZeros(digits: string): number {
  let length = digits.length
  while (length > 0 && digits[length - 1] === '0') length--
  return length
}
