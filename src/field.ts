// A rule for one value, in the forms that need it: the check, the words of messages and the published schema.

import { InexactNumber, int64Max, int64Min, isJsonObject, readInt64 } from './int64.ts'

/** A JSON Schema (2020-12), as published in the OpenAPI document. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** How a value is read, and how messages describe it. It reads any value of JSON, or only text. */
export interface Rule<T, Input = unknown> {
  /** A valid value, in the words of a message: `an integer from 1 to 100`. */
  readonly expected: string
  /** The value, or undefined if it is invalid. */
  readonly read: (value: Input) => T | undefined
  /** What is wrong with an invalid value, if there is more to say than what was expected. */
  readonly problem?: (value: Input) => string | undefined
}

export interface Field<T, Input = unknown> extends Rule<T, Input> {
  readonly schema: JsonSchema
}

export const int64: Field<bigint> = {
  schema: { type: 'integer', format: 'int64' },
  expected: 'a 64-bit integer',
  read: readInt64,
  problem(value) {
    const source = value instanceof InexactNumber ? value.source : ''
    if (!/^-?\d+$/.test(source)) return undefined
    const isSmall = source.startsWith('-')
    return isSmall ? `is too small: expected at least ${int64Min}` : `is too large: expected at most ${int64Max}`
  },
}

export function oneOf<const T extends string>(values: readonly T[]): Field<T> {
  return {
    schema: { type: 'string', enum: values },
    expected: oneOfText(values),
    read: value => values.find(known => known === value),
  }
}

/** `available, pending or sold` */
export function oneOfText(values: readonly string[]): string {
  return values.join(', ').replace(/, ([^,]*)$/, ' or $1')
}

/** `limit is "abc": expected an integer from 1 to 100` */
export function invalid<Input>(name: string, value: Input, rule: Omit<Rule<unknown, Input>, 'read'>): string {
  return `${name} ${rule.problem?.(value) ?? `is ${show(value)}: expected ${rule.expected}`}`
}

/** `categoryId is missing: expected a 64-bit integer` */
export function missing(name: string, { expected }: { readonly expected: string }): string {
  return `${name} is missing: expected ${expected}`
}

/** Further unknown names are counted, so that messages stay short. */
const namedMax = 20

/** One problem for each name that is not known. */
export function unknownNames(
  kind: 'property' | 'parameter',
  sent: readonly string[],
  known: readonly string[],
): string[] {
  const unknown = sent.filter(name => !known.includes(name))
  if (unknown.length === 0) return []
  const advice = known.length > 0 ? `expected ${oneOfText(known)}` : 'this operation takes no parameters'
  const problems = unknown.slice(0, namedMax).map(name => `unknown ${kind} ${show(name)}: ${advice}`)
  const unnamed = unknown.length - problems.length
  return unnamed > 0 ? [...problems, `and ${unnamed} more`] : problems
}

const shownCharsMax = 40

/** A value as messages show it: short and on one line. */
export function show(value: unknown): string {
  if (value instanceof InexactNumber) return cut(value.source)
  if (Array.isArray(value)) return '[…]'
  if (isJsonObject(value)) return '{…}'
  return typeof value === 'string' ? JSON.stringify(cut(value)) : cut(String(value))
}

function cut(text: string): string {
  return text.length > shownCharsMax ? `${text.slice(0, shownCharsMax).toWellFormed()}…` : text
}
