// What the checks of the interface use: a request, its response, and what is expected of it.

import { bodyBytesMax, readBytes } from '../client/request.ts'
import { int64 } from '../field.ts'
import { InexactNumber, isJsonObject } from '../int64.ts'
import { readJson } from '../json.ts'
import type { PetStatus } from '../pet.ts'

/** One rule of the interface. It accepts any content of the catalogue. */
export interface Check {
  readonly name: string
  /** The heading in docs/interface.md with the rule. */
  readonly section: string
  /** If one of these has failed, this check is skipped: it may fail for the same reason. */
  readonly needs: readonly Check[]
  /** Returns if the server passes. Rejects with Failed or Skipped. */
  run(probe: Probe): Promise<void>
}

export class Failed extends Error {
  readonly expected: string
  readonly found: string
  constructor(expected: string, found: string, cause?: Error) {
    super(`expected ${expected}, found ${found}`, { cause })
    this.expected = expected
    this.found = found
  }
}

/** Ends a check that is not possible with this server or in this run. */
export class Skipped extends Error {}

export type JsonObject = Readonly<Record<string, unknown>>

export interface FieldRule {
  readonly expected: string
  isValid(value: unknown, status: number): boolean
}

/** A request and its response. A method that does not find what it reads or expects fails the check. */
export class Exchange {
  /** With its body: `GET /pets?limit=0`, `POST /pets {"name":7}`. */
  readonly request: string
  readonly response: Response
  readonly text: string

  constructor(request: string, response: Response, text: string) {
    this.request = request
    this.response = response
    this.text = text
  }

  fail(expected: string, found = `returned ${this.response.status} ${this.text || 'without a body'}`): never {
    throw new Failed(expected, `${this.request} ${found}`)
  }

  expect(condition: boolean, expected: string, found?: string): void {
    if (!condition) this.fail(expected, found)
  }

  expectStatus(status: number): this {
    this.expect(this.response.status === status, `status ${status}`)
    return this
  }

  expectJsonType(): this {
    const type = this.response.headers.get('content-type') ?? 'no Content-Type'
    this.expect(/^application\/json\s*(;|$)/i.test(type), 'Content-Type: application/json', `returned ${type}`)
    return this
  }

  /** Undefined if the body is not JSON. */
  json(): unknown {
    const parsed = readJson(this.text)
    return parsed.ok ? parsed.value : undefined
  }

  object(): JsonObject {
    const value = this.json()
    return isJsonObject(value) ? value : this.fail('a JSON object')
  }

  /** The items of a list, unchecked. */
  items(): readonly unknown[] {
    this.expectStatus(200)
    const items = this.json()
    return Array.isArray(items) ? items : this.fail('a JSON array')
  }

  expectField(object: unknown, field: string, { expected, isValid }: FieldRule): void {
    if (!isJsonObject(object)) this.fail('a JSON object')
    const value = object[field]
    const found = value === undefined ? `no ${field}` : `the ${field} ${show(value)}`
    const { status } = this.response
    this.expect(isValid(value, status), `${field}: ${expected}`, `returned ${status} with ${found}`)
  }

  /** Checks these fields of a Pet, and no other. */
  expectValues(pet: unknown, values: JsonObject): void {
    for (const [field, value] of Object.entries(values)) {
      const expected = show(value)
      this.expectField(pet, field, { expected, isValid: found => show(found) === expected })
    }
  }

  petId(pet: unknown = this.object()): bigint {
    return int64.read(Object(pet)['id']) ?? this.fail('an animal with an int64 as its id')
  }

  petIds(): readonly bigint[] {
    return this.items().map(item => this.petId(item))
  }
}

/** Equal for equal JSON values. */
function show(value: unknown): string {
  const integer = int64.read(value)
  if (integer !== undefined) return String(integer)
  return value instanceof InexactNumber ? value.source : (JSON.stringify(value) ?? 'absent')
}

interface ProbeRequest {
  readonly path: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer>
  /** The Authorization header; null sends none. Default: the key. */
  readonly authorization?: string | null
}

/** A string is the path of a GET. */
export type Sendable = string | ProbeRequest

/** POST /pets with a JSON body, unless the options change that. */
export function post(body: ProbeRequest['body'], { headers, ...options }: Partial<ProbeRequest> = {}): ProbeRequest {
  const json = { 'Content-Type': 'application/json', ...headers }
  return { path: '/pets', method: 'POST', headers: json, ...(body !== undefined && { body }), ...options }
}

/** JSON text of each field, so that a check can send invalid values; undefined omits the field. */
export type Fields = Readonly<Record<string, string | undefined>>

export function newPet(fields: Fields = {}): string {
  const all = Object.entries({ name: JSON.stringify(petName()), categoryId: '1', status: '"available"', ...fields })
  const written = all.filter(([, value]) => value !== undefined)
  return `{${written.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
}

/** Tells the operator where the animal comes from. */
export function petName(): string {
  return `conform ${crypto.randomUUID().slice(0, 8)}`
}

/** A creation for each value of this field; undefined omits it. */
export function postEach(field: string, values: readonly unknown[]): readonly ProbeRequest[] {
  return values.map(value => post(newPet({ [field]: JSON.stringify(value) })))
}

/** Random, near the end of the range: no animal has it. */
export function absentId(): bigint {
  return 2n ** 63n - 2n - BigInt(Math.floor(Math.random() * 1e12))
}

export const wrongBearer = `Bearer conform-wrong-key-${crypto.randomUUID()}`

export interface Target {
  /** Without a slash at the end: `https://pets.example.com/v1`. */
  readonly baseUrl: string
  readonly key: string
  readonly readOnly: boolean
}

const responseMs = 10_000
/** A server that answers slowly must not hold up the run for hours. */
const runMsMax = 300_000

/** Sends the requests of the checks, and remembers what later checks can use. */
export class Probe {
  readonly target: Target
  /** The checks that failed, and those that were skipped because of one, each with the one that failed. */
  readonly failed = new Map<Check, Check>()
  readonly addedIds: bigint[] = []
  /** Every response from 400 on. */
  readonly errors: Exchange[] = []
  readonly #endMs = performance.now() + runMsMax

  constructor(target: Target) {
    this.target = target
  }

  /** Fails the check if there is no response, and skips it if the request cannot be sent in this run. */
  async send(what: Sendable): Promise<Exchange> {
    const sent: ProbeRequest = typeof what === 'string' ? { path: what } : what
    const { path, method = 'GET', headers, body, authorization = `Bearer ${this.target.key}` } = sent
    if (this.target.readOnly && method !== 'GET') throw new Skipped('it writes, and this run only reads')
    const request = `${method} ${path} ${typeof body === 'string' ? body : ''}`.trimEnd()
    const leftMs = this.#endMs - performance.now()
    if (leftMs <= 0) throw new Failed(`the run to end within ${runMsMax / 1_000} s`, 'it did not')
    const received = fetch(`${this.target.baseUrl}${path}`, {
      method,
      headers: { ...(authorization !== null && { Authorization: authorization }), ...headers },
      ...(body !== undefined && { body }),
      // A redirect may lead to another server, which must not receive the key.
      redirect: 'manual',
      signal: AbortSignal.timeout(Math.min(responseMs, leftMs)),
    })
    const exchange = await received
      .then(async response => {
        const bytes = await readBytes(response)
        if (bytes) return new Exchange(request, response, new TextDecoder().decode(bytes))
        throw new Failed(`a body of at most ${bodyBytesMax / 1024 ** 2} MiB`, `a longer one for ${request}`)
      })
      .catch((error: Error) => {
        if (error instanceof Failed) throw error
        throw new Failed(`a response to ${request} within ${responseMs / 1_000} s`, error.message, error)
      })
    const { status } = exchange.response
    if (status === 429) throw new Skipped("the server's rate limit is reached")
    if (status >= 400) this.errors.push(exchange)
    return exchange
  }

  /** The response to a creation: 201 with a JSON object. */
  async create(fields?: Fields): Promise<Exchange> {
    const created = await this.send(post(newPet(fields)))
    const id = int64.read(created.expectStatus(201).object()['id'])
    if (id !== undefined) this.addedIds.push(id)
    return created
  }

  /** GET /pets with this query: 200 with a JSON array. */
  async list(query: string): Promise<Exchange> {
    const list = await this.send(`/pets${query}`)
    list.items()
    return list
  }

  /** Adds animals until the catalogue has this many (at most 100), with this status if one is given. */
  async ensurePets(count: number, status?: PetStatus): Promise<void> {
    const list = await this.list(`?limit=100${status === undefined ? '' : `&status=${status}`}`)
    for (let present = list.items().length; present < count; present++) {
      if (this.target.readOnly) throw new Skipped('the catalogue has too few animals for it, and this run only reads')
      await this.create(status && { status: JSON.stringify(status) })
    }
  }

  async petPath(): Promise<string> {
    await this.ensurePets(1)
    const [id] = (await this.list('?limit=1')).petIds()
    return `/pets/${id}`
  }
}
