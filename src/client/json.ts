// A quote right after a letter ends a string (an escaped one follows a backslash), so these digits stand outside of any.
const longInteger = /([A-Za-z]"\s*:\s*)(-?[1-9]\d{15,})(?=[\s,\]}])/g

// Nobody who writes an answer knows it, so nothing in an answer is taken for an integer that is none.
const mark = `int:${Math.random()}:`

/**
 * Parses JSON with integers of 16 digits or more, as values of properties, left as they were written: for
 * {@link integerOf} to read. Not every runtime gives a reviver the source text (Node 20 does not), so they are
 * wrapped before the parser sees them. Throws a SyntaxError like JSON.parse.
 */
export function parseJson(text: string): unknown {
  return JSON.parse(/\d{16}/.test(text) ? text.replace(longInteger, `$1["${mark}$2"]`) : text)
}

/** The integer that a parsed value stands for, exact; undefined where it is none or may have been rounded. */
export function integerOf(value: unknown): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined
  const wrapped: unknown = Array.isArray(value) ? value[0] : undefined
  if (typeof wrapped !== 'string' || !wrapped.startsWith(mark)) return undefined
  return BigInt(wrapped.slice(mark.length))
}
