// Query parameters, and the request headers that are parameters.
import { type Field, invalid, type Rule, unknownNames } from '../field.ts'

interface Parameter {
  readonly name: string
  readonly text: string
}

/** Query parameters. Problems are collected, so that one response names them all. */
export class Query {
  readonly problems: string[] = []
  readonly #parameters: readonly Parameter[]

  constructor(text: string) {
    this.#parameters = text === '' ? [] : parse(text)
  }

  /** The parameter's value; undefined if it was not sent, or is a problem. */
  read<T>(name: string, rule: Rule<T, string>): T | undefined {
    const text = this.readText(name)
    return text === undefined ? undefined : this.check(name, text, rule)
  }

  check<T>(name: string, text: string, rule: Rule<T, string>): T | undefined {
    const value = rule.read(text)
    if (value === undefined) this.problems.push(invalid(name, text, rule))
    return value
  }

  /** The parameter as it was sent; undefined if it was not, or if it occurs twice, which is a problem. */
  readText(name: string): string | undefined {
    let sent: string | undefined
    let times = 0
    for (const parameter of this.#parameters) {
      if (parameter.name !== name) continue
      sent = parameter.text
      times++
    }
    if (times < 2) return sent
    this.problems.push(`${name} occurs ${times} times: expected once`)
    return undefined
  }

  /** Adds a problem for each parameter that was sent and is not one of these. */
  refuseUnknown(parameters: readonly { readonly name: string; readonly in: string }[]): void {
    const known = parameters.filter(({ in: place }) => place === 'query').map(({ name }) => name)
    this.problems.push(...unknownNames('parameter', [...new Set(this.#parameters.map(({ name }) => name))], known))
  }
}

/** As URLSearchParams, which takes four times as long for a plain query. */
function parse(query: string): readonly Parameter[] {
  if (/[%+?]/.test(query)) return [...new URLSearchParams(query)].map(([name, text]) => ({ name, text }))
  const parameters: Parameter[] = []
  for (let start = 0; start < query.length; ) {
    const next = query.indexOf('&', start)
    const end = next === -1 ? query.length : next
    const equals = query.indexOf('=', start)
    const nameEnd = equals === -1 || equals > end ? end : equals
    if (start < end) parameters.push({ name: query.slice(start, nameEnd), text: query.slice(nameEnd + 1, end) })
    start = end + 1
  }
  return parameters
}

const idempotencyKeyCharsMax = 255
const bareKey = `[!#-~][!-~]{0,${idempotencyKeyCharsMax - 1}}`
const quotedKey = `"(?:[!#-\\[\\]-~]|\\\\["\\\\]){1,${idempotencyKeyCharsMax}}"`
const idempotencyKeyPattern = new RegExp(`^(?:${bareKey}|${quotedKey})$`)
/** With quotes. An escaped character counts twice. */
const idempotencyHeaderCharsMax = idempotencyKeyCharsMax + 2

/** Bare or in quotes: both spellings are the same key. */
export const idempotencyKey: Field<string, string> = {
  schema: { type: 'string', minLength: 1, maxLength: idempotencyHeaderCharsMax, pattern: idempotencyKeyPattern.source },
  expected: `1 to ${idempotencyKeyCharsMax} visible ASCII characters, bare or in double quotes`,
  read(text) {
    if (text.length > idempotencyHeaderCharsMax || !idempotencyKeyPattern.test(text)) return undefined
    return text.startsWith('"') ? text.slice(1, -1).replace(/\\(.)/g, '$1') : text
  },
}

/** A longer Prefer header is ignored. */
const preferCharsMax = 1_024

/** Whether a Prefer header (RFC 7240) asks for `handling=strict`. The first `handling` counts. */
export function prefersStrict(header: string | null): boolean {
  if (header === null || header.length > preferCharsMax) return false
  // Quoted strings may contain commas; only "strict" itself matters.
  const plain = header.replace(/"(?:[^"\\]|\\.)*"/g, quoted => (/^"strict"$/i.test(quoted) ? 'strict' : '""'))
  for (const preference of plain.split(',')) {
    const [pair = ''] = preference.split(';', 1)
    const handling = /^handling\s*(?:=\s*(\S*))?$/i.exec(pair.trim())
    if (handling) return handling[1]?.toLowerCase() === 'strict'
  }
  return false
}
