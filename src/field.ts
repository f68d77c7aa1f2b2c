import { InexactNumber, isJsonObject } from './json.ts'

/** A JSON Schema (2020-12) as it stands in the published description. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** One rule in its three forms, together so that they cannot drift apart: what we publish, what we check, what we get. */
export interface Field<T> {
  readonly schema: JsonSchema
  /** What a valid value is, as a message says it: `a whole number from 1 to 100`. */
  readonly expected: string
  /** The value, or undefined where it breaks the rule. */
  read(value: unknown): T | undefined
}

export function oneOf<const T extends string>(values: readonly T[]): Field<T> {
  return {
    schema: { type: 'string', enum: values },
    expected: `one of ${values.join(', ')}`,
    read: value => values.find(known => known === value),
  }
}

/** `Cannot read limit "abc": expected a whole number from 1 to 100` */
export function cannotRead(name: string, found: unknown, expected: string): string {
  return `Cannot read ${name} ${show(found)}: expected ${expected}`
}

/** More of a kind are counted, not named: an answer stays short, whatever was sent. */
const namedMax = 20

/** What strict handling objects to: each name that is not known, as a problem of its own. */
export function unknownNames(
  kind: 'property' | 'parameter',
  sent: readonly string[],
  known: readonly string[],
): string[] {
  const unknown = sent.filter(name => !known.includes(name))
  if (unknown.length === 0) return []
  const expected = known.length > 0 ? `only ${known.join(', ')}` : 'none'
  const named = unknown.slice(0, namedMax).map(name => `Unknown ${kind} ${show(name)}: expected ${expected}`)
  const unnamed = unknown.length - named.length
  return unnamed > 0 ? [...named, `and ${unnamed} more of the kind`] : named
}

const shownCharsMax = 40

/** A value as a message shows it: short, on one line, in ASCII where it matters. */
export function show(value: unknown): string {
  if (value instanceof InexactNumber) return cut(value.source)
  if (Array.isArray(value)) return '[…]'
  if (isJsonObject(value)) return '{…}'
  return typeof value === 'string' ? JSON.stringify(cut(value)) : cut(String(value))
}

function cut(text: string): string {
  return text.length > shownCharsMax ? `${text.slice(0, shownCharsMax).toWellFormed()}…` : text
}
