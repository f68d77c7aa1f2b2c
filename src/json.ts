import { InexactNumber } from './int64.ts'
import type { Pet } from './pet.ts'

type ReadJson =
  | { readonly ok: true; readonly value: unknown }
  /** Line and column count from 1. A column is a code point. */
  | { readonly ok: false; readonly problem: string; readonly at?: { readonly line: number; readonly column: number } }

export const nestingMax = 64

// Doubles hold 15 digits exactly, and JSON.parse without a reviver is several times faster.
const mayBeInexact = /[\d.]{16}|\d[eE]/

/** Parses JSON without rounding: a number that a double may not hold exactly becomes an {@link InexactNumber}. */
export function readJson(text: string): ReadJson {
  if (isNestedTooDeeply(text)) {
    return { ok: false, problem: `objects and arrays are nested more than ${nestingMax} levels deep` }
  }
  try {
    return { ok: true, value: mayBeInexact.test(text) ? JSON.parse(text, keepInexact) : JSON.parse(text) }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // Without the white space at the end: otherwise a missing brace would be reported on an empty line.
    const before = text.slice(0, firstInvalid(text.trimEnd())).split(/\r\n|\n|\r/)
    const at = { line: before.length, column: [...(before.at(-1) ?? '')].length + 1 }
    const problem = error.message
      .replace(/^JSON Parse error: /, '')
      .replace(/^Unable to.*/, 'Unexpected text after the value')
      .replace(/^Property name must.*/, 'Expected a name in double quotes after the comma')
    // The engine quotes the text, perhaps up to half a character.
    return { ok: false, problem: problem.toWellFormed(), at }
  }
}

/** Matches a token at an index, and the white space after it. */
const lex = ({ source }: RegExp) => new RegExp(`(?:${source})[ \\t\\n\\r]*`, 'y')
const mark = { '{': lex(/\{/), '}': lex(/\}/), '[': lex(/\[/), ']': lex(/\]/), ':': lex(/:/), ',': lex(/,/) }
const string = lex(/"[ !#-[\]-\uffff]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[ !#-[\]-\uffff]*)*"/)
const scalar = lex(/true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/)

/** The index of the first token that is not JSON, in linear time: JavaScriptCore's errors have no position. */
function firstInvalid(text: string): number {
  let index = text.search(/[^ \t\n\r]|$/)
  const accept = (token: RegExp): boolean => {
    token.lastIndex = index
    const isNext = token.test(text)
    if (isNext) index = token.lastIndex
    return isNext
  }
  const acceptItems = (end: RegExp, acceptItem: () => boolean): boolean => {
    if (accept(end)) return true
    while (acceptItem()) if (!accept(mark[','])) return accept(end)
    return false
  }
  // Recursion is safe: the nesting was checked.
  const acceptValue = (): boolean => {
    if (accept(mark['{'])) return acceptItems(mark['}'], () => accept(string) && accept(mark[':']) && acceptValue())
    return accept(mark['[']) ? acceptItems(mark[']'], acceptValue) : accept(string) || accept(scalar)
  }
  acceptValue()
  return index
}

function keepInexact(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value
  return mayBeInexact.test(context.source) ? new InexactNumber(context.source) : value
}

/** Checked before parsing, so that deep nesting cannot exhaust the parser's stack. Ignores brackets in strings. */
function isNestedTooDeeply(text: string): boolean {
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (inString) {
      if (char === 0x5c /* \ */) i++
      else if (char === 0x22 /* " */) inString = false
    } else if (char === 0x22) inString = true
    else if (char === 0x7b /* { */ || char === 0x5b /* [ */) {
      if (++depth > nestingMax) return true
    } else if (char === 0x7d /* } */ || char === 0x5d /* ] */) depth--
  }
  return false
}

export const petToJson = (pet: Pet) => JSON.stringify(jsonFields(pet))
export const petsToJson = (pets: readonly Pet[]) => JSON.stringify(pets.map(jsonFields))

/** JSON.stringify takes no bigint. For most pages it is two to three times as fast as text made by hand. */
function jsonFields({ id, name, categoryId, status }: Pet) {
  return { id: exactNumber(id), name, categoryId: exactNumber(categoryId), status }
}

// TypeScript has no type for it yet.
const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }

function exactNumber(value: bigint): number | object {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : rawJSON(String(value))
}
