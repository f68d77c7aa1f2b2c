// Requests to a server that may have any defect, and what is expected of its responses.

import { stringify } from '../client/json.ts'
import { bodyBytesMax, readBytes } from '../client/request.ts'
import { int64, type Rule } from '../field.ts'
import { InexactNumber } from '../int64.ts'
import { readJson } from '../json.ts'

/** The server breaks the rule of a check. */
export class Failed extends Error {
  readonly expected: string
  readonly found: string
  constructor(expected: string, found: string, cause?: unknown) {
    super(`expected ${expected}, found ${found}`, { cause })
    this.expected = expected
    this.found = found
  }
}

/** Ends a check that is not possible with this server or in this run. */
export class Skipped extends Error {}

/** A request and its response. */
export interface Exchange {
  /** With its body: `GET /pets?limit=0`, `POST /pets {"name":7}`. */
  readonly request: string
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Undefined if the body is not JSON. */
  readonly json: unknown
}

type Fields = Readonly<Record<string, unknown>>
type FieldRules = Readonly<Record<string, Rule<unknown>>>

export function fail({ request, status, text }: Exchange, expected: string, found?: string): never {
  throw new Failed(expected, `${request} ${found ?? `returned ${status} ${text || 'without a body'}`}`)
}

/** Checks these fields of the body or of an item, and no other. */
export function expectFields(exchange: Exchange, rules: FieldRules, object = exchange.json): void {
  for (const [field, { expected, read }] of Object.entries(rules)) {
    const value: unknown = Object(object)[field]
    const found = `returned ${exchange.status} with ${value === undefined ? 'no' : 'the'} ${field} ${show(value)}`
    if (read(value) === undefined) fail(exchange, `${field}: ${expected}`, found)
  }
}

/** The rules that each of these fields has this value. */
export function sameAs(fields: Fields): FieldRules {
  const rule = (expected: string) => ({ expected, read: (found: unknown) => show(found) === expected || undefined })
  return Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, rule(show(value))]))
}

/** Equal for equal JSON values. */
export function show(value: unknown): string {
  const integer = int64.read(value)
  if (integer !== undefined) return String(integer)
  return value instanceof InexactNumber ? value.source : (JSON.stringify(value) ?? 'absent')
}

export interface ProbeRequest {
  /** Default: GET. */
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** The Authorization header; null sends none. Default: the key. */
  readonly authorization?: string | null
}

/** The body of a creation, valid unless the fields change that. The name shows where the animal comes from. */
export function newPet(fields: Fields = {}): string {
  return stringify({ name: `conform ${crypto.randomUUID()}`, categoryId: 1, status: 'available', ...fields })
}

export interface Target {
  /** Without a slash at the end: `https://pets.example.com/v1`. */
  readonly baseUrl: string
  readonly key: string
  readonly readOnly: boolean
}

const responseMs = 10_000
/** A server that answers slowly must not hold up the run for hours. */
const runMsMax = 300_000

/** Sends the requests of a run. */
export class Probe {
  readonly target: Target
  /** What was sent and received so far. */
  readonly exchanges: Exchange[] = []
  readonly #endMs = performance.now() + runMsMax

  constructor(target: Target) {
    this.target = target
  }

  /** Fails the check without a response with that status; skips it if the request cannot be sent in this run. */
  async send({ method = 'GET', path, ...sent }: ProbeRequest, status?: number): Promise<Exchange> {
    const { baseUrl, key, readOnly } = this.target
    const { headers, body, authorization = `Bearer ${key}` } = sent
    if (readOnly && method !== 'GET') throw new Skipped('it writes, and this run only reads')
    const leftMs = this.#endMs - performance.now()
    if (leftMs <= 0) throw new Failed(`the run to end within ${runMsMax / 1_000} s`, 'it did not')
    const credential = authorization === null ? {} : { Authorization: authorization }
    const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const request = `${method} ${path} ${body ?? ''}`.trimEnd()
    const received = fetch(`${baseUrl}${path}`, {
      method,
      headers: { ...type, ...credential, ...headers },
      ...(body !== undefined && { body }),
      // A redirect may lead to another server, which must not receive the key.
      redirect: 'manual',
      signal: AbortSignal.timeout(Math.min(responseMs, leftMs)),
    }).then(async response => ({ response, bytes: await readBytes(response) }))
    const { response, bytes } = await received.catch((error: Error) => {
      throw new Failed(`a response to ${request} within ${responseMs / 1_000} s`, error.message, error)
    })
    if (!bytes) throw new Failed(`a body of at most ${bodyBytesMax / 1024 ** 2} MiB`, `a longer one for ${request}`)
    if (response.status === 429) throw new Skipped("the server's rate limit is reached")
    const text = new TextDecoder().decode(bytes)
    const parsed = readJson(text)
    const json = parsed.ok ? parsed.value : undefined
    const exchange = { request, status: response.status, headers: response.headers, text, json }
    this.exchanges.push(exchange)
    return status === undefined || response.status === status ? exchange : fail(exchange, `status ${status}`)
  }

  /** Adds an animal with these fields. The response has them, or follows other rules. */
  async create(fields: Fields = {}, rules = sameAs(fields)): Promise<Exchange> {
    const created = await this.send({ method: 'POST', path: '/pets', body: newPet(fields) }, 201)
    expectFields(created, rules)
    return created
  }

  /** Lists at most `countMax` animals; each follows the rules. */
  async list(query = '', countMax = Number.POSITIVE_INFINITY, rules: FieldRules = {}) {
    const list = await this.send({ path: `/pets${query}` }, 200)
    const pets: readonly unknown[] = Array.isArray(list.json) ? list.json : fail(list, 'a JSON array')
    if (pets.length > countMax) fail(list, `at most ${countMax} animals`, `lists ${pets.length}`)
    for (const pet of pets) expectFields(list, rules, pet)
    return { list, pets }
  }
}
