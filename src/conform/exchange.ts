import { readLinks } from '../client/index.ts'
import { int64 } from '../field.ts'
import { InexactNumber, isJsonObject, parseJson } from '../int64.ts'
import { type Pet, petStatus } from '../pet.ts'

/** The outcome of a check. */
export type Finding =
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'failed'; readonly expected: string; readonly found: string }
  | { readonly outcome: 'skipped'; readonly why: string }

/** Ends a check from within its helpers, so that the check itself reads like its rule. */
export class CheckEnded extends Error {
  readonly finding: Finding
  constructor(finding: Finding) {
    super(finding.outcome)
    this.finding = finding
  }
}

export function fail(expected: string, found: string): never {
  throw new CheckEnded({ outcome: 'failed', expected, found })
}

/** For a check that is not possible with this server or in this run. */
export function skip(why: string): never {
  throw new CheckEnded({ outcome: 'skipped', why })
}

interface FieldRule {
  readonly expected: string
  isValid(value: unknown, status: number): boolean
}

const string: FieldRule = { expected: 'a string', isValid: value => typeof value === 'string' }
const integer: FieldRule = { expected: 'an int64', isValid: value => int64.read(value) !== undefined }

/** The interface alone: it does not limit names. */
export const petFields = {
  id: integer,
  name: string,
  categoryId: integer,
  status: {
    expected: `${petStatus.expected}, or absent`,
    isValid: value => value === undefined || petStatus.read(value) !== undefined,
  },
} satisfies Record<keyof Pet, FieldRule>

export const errorFields = {
  code: string,
  message: string,
  status: { expected: 'the HTTP status', isValid: (value, status) => value === status },
} satisfies Record<string, FieldRule>

type JsonObject = Readonly<Record<string, unknown>>

/** A request and its response. A method that does not find what it reads fails the check. */
export class Exchange {
  /** With the start of its body: `GET /pets?limit=0`, `POST /pets {"name":7}`. */
  readonly request: string
  readonly url: string
  readonly status: number
  readonly headers: Headers
  readonly text: string

  constructor(request: string, url: string, { status, headers }: Response, text: string) {
    this.request = request
    this.url = url
    this.status = status
    this.headers = headers
    this.text = text
  }

  fail(expected: string, found = `returned ${this.status} ${this.text || 'without a body'}`): never {
    return fail(expected, `${this.request} ${found}`)
  }

  expect(condition: boolean, expected: string, found?: string): void {
    if (!condition) this.fail(expected, found)
  }

  expectStatus(status: number): void {
    this.expect(this.status === status, `status ${status}`)
  }

  /** The header's value. `form` is the exact value or a pattern, which `expected` describes. */
  header(name: string, form: string | RegExp, expected = String(form)): string {
    const value = this.headers.get(name)
    if (value === null) this.fail(`${name}: ${expected}`, `returned no ${name}`)
    const valid = typeof form === 'string' ? value === form : form.test(value)
    this.expect(valid, `${name}: ${expected}`, `returned ${name}: ${value}`)
    return value
  }

  /** The absolute address of the link with this relation. */
  link(relation: string): URL | undefined {
    const link = readLinks(this.headers.get('link'), this.url).find(({ rel }) => rel === relation)
    return link && new URL(link.href)
  }

  /** The path of the next page. Uses only the link's query, so that the key stays on the checked server. */
  nextPath(): string | undefined {
    const query = this.link('next')?.search
    return query ? `/pets${query}` : undefined
  }

  expectJsonType(): void {
    this.header('Content-Type', /^application\/json\s*(;|$)/i, 'application/json')
  }

  json(): unknown {
    this.expectJsonType()
    const parsed = parseJson(this.text)
    return parsed.ok ? parsed.value : this.fail('a JSON body')
  }

  /** Checks one field of a Pet or an Error. */
  expectField(object: unknown, field: string, rule: FieldRule): void {
    if (!isJsonObject(object)) this.fail('a JSON object')
    const value = object[field]
    const text = value instanceof InexactNumber ? value.source : JSON.stringify(value)
    const found = value === undefined ? `no ${field}` : `the ${field} ${text}`
    const valid = rule.isValid(value, this.status)
    this.expect(valid, `${field}: ${rule.expected}`, `returned ${this.status} with ${found}`)
  }

  pet(status: number): Pet {
    this.expectStatus(status)
    return this.#petOf(this.json())
  }

  #petOf(value: unknown): Pet {
    for (const [field, rule] of Object.entries(petFields)) this.expectField(value, field, rule)
    const { id, name, categoryId, status } = value as JsonObject
    const known = petStatus.read(status)
    const pet = { id: int64.read(id) ?? 0n, name: String(name), categoryId: int64.read(categoryId) ?? 0n }
    return known === undefined ? pet : { ...pet, status: known }
  }

  /** The items of a list, unchecked. */
  items(): readonly unknown[] {
    this.expectStatus(200)
    const items = this.json()
    return Array.isArray(items) ? items : this.fail('a JSON array')
  }

  pets(): readonly Pet[] {
    return this.items().map(item => this.#petOf(item))
  }

  /** The Error body, whose message contains these names. */
  error(status: number, ...names: string[]): JsonObject {
    this.expectStatus(status)
    const error = this.json() as JsonObject
    for (const [field, rule] of Object.entries(errorFields)) this.expectField(error, field, rule)
    const missing = names.filter(name => !String(error['message']).includes(name))
    this.expect(missing.length === 0, `a message about ${missing.join(', ')}`)
    return error
  }
}
