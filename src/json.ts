/** Objects and arrays inside one another, at most. */
export const nestingMax = 64

/** A number that a double cannot be trusted with: kept as the text that was sent. */
export class InexactNumber {
  readonly source: string
  constructor(source: string) {
    this.source = source
  }
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof InexactNumber)
  )
}

export type ParsedJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly why: string }

// Up to 15 digits without an exponent a double is exact, and the plain parse is several times faster.
const mayBeInexact = /[\d.]{16}|\d[eE]/

/** Parses JSON without rounding: a number that a double might change becomes an {@link InexactNumber}. */
export function parseJson(text: string): ParsedJson {
  if (nestingExceeds(text, nestingMax)) {
    return { ok: false, why: `objects and arrays are nested more than ${nestingMax} deep` }
  }
  try {
    return { ok: true, value: mayBeInexact.test(text) ? JSON.parse(text, keepInexact) : JSON.parse(text) }
  } catch (error) {
    if (error instanceof SyntaxError)
      return { ok: false, why: error.message.replace(/^JSON Parse error: /, '') }
    throw error
  }
}

function keepInexact(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value
  return mayBeInexact.test(context.source) ? new InexactNumber(context.source) : value
}

/** Brackets inside strings do not count. The parser's own recursion is never reached by a deeper text. */
function nestingExceeds(text: string, max: number): boolean {
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (inString) {
      if (char === 0x5c /* \ */) i++
      else if (char === 0x22 /* " */) inString = false
    } else if (char === 0x22) inString = true
    else if (char === 0x7b /* { */ || char === 0x5b /* [ */) {
      if (++depth > max) return true
    } else if (char === 0x7d /* } */ || char === 0x5d /* ] */) depth--
  }
  return false
}
