import { readLinks } from '../client/headers.ts'
import { int64 } from '../field.ts'
import { InexactNumber, isJsonObject, parseJson } from '../int64.ts'
import { type Pet, type PetStatus, petStatus } from '../pet.ts'

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
/** A value of undefined expects no such field. */
export type PetValues = { readonly [Field in keyof Pet]?: Pet[Field] | undefined }

/** A request and its response. A method that does not find what it reads or expects fails the check. */
export class Exchange {
  /** With the start of its body: `GET /pets?limit=0`, `POST /pets {"name":7}`. */
  readonly request: string
  readonly response: Response
  readonly text: string

  constructor(request: string, response: Response, text: string) {
    this.request = request
    this.response = response
    this.text = text
  }

  fail(expected: string, found = `returned ${this.response.status} ${this.text || 'without a body'}`): never {
    return fail(expected, `${this.request} ${found}`)
  }

  expect(condition: boolean, expected: string, found?: string): void {
    if (!condition) this.fail(expected, found)
  }

  expectStatus(status: number): this {
    this.expect(this.response.status === status, `status ${status}`)
    return this
  }

  /** `form` is the exact value or a pattern, which `expected` describes. */
  expectHeader(name: string, form: string | RegExp, expected = String(form)): this {
    const value = this.header(name)
    if (value === null) this.fail(`${name}: ${expected}`, `returned no ${name}`)
    const valid = typeof form === 'string' ? value === form : form.test(value)
    this.expect(valid, `${name}: ${expected}`, `returned ${name}: ${value}`)
    return this
  }

  header(name: string): string | null {
    return this.response.headers.get(name)
  }

  /** The absolute address of the link with this relation. */
  link(relation: string): URL | undefined {
    const link = readLinks(this.header('link'), this.response.url).find(({ rel }) => rel === relation)
    return link && new URL(link.href)
  }

  /** The path of the next page. Uses only the link's query, so that the key stays on the checked server. */
  nextPath(): string | undefined {
    const query = this.link('next')?.search
    return query ? `/pets${query}` : undefined
  }

  expectJsonType(): this {
    return this.expectHeader('Content-Type', /^application\/json\s*(;|$)/i, 'application/json')
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
    const valid = rule.isValid(value, this.response.status)
    this.expect(valid, `${field}: ${rule.expected}`, `returned ${this.response.status} with ${found}`)
  }

  /** The animal, with these values. */
  pet(status: number, expected: PetValues = {}): Pet {
    this.expectStatus(status)
    const pet = this.#petOf(this.json())
    for (const field of Object.keys(expected) as (keyof Pet)[]) {
      this.expect(pet[field] === expected[field], `the ${field} ${expected[field] ?? 'absent'}`)
    }
    return pet
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

  /** An Error whose message contains these names. */
  expectError(status: number, ...names: string[]): this {
    this.expectStatus(status)
    const error = this.json() as JsonObject
    for (const [field, rule] of Object.entries(errorFields)) this.expectField(error, field, rule)
    const missing = names.filter(name => !String(error['message']).includes(name))
    this.expect(missing.length === 0, `a message about ${missing.join(', ')}`)
    return this
  }
}

interface ProbeRequest {
  /** Under the base address. */
  readonly path: string
  /** Default: GET. */
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

/** A NewPet as JSON. */
export function newPet(fields: Fields = {}): string {
  const all = Object.entries({ name: JSON.stringify(petName()), categoryId: '1', ...fields })
  const written = all.filter(([, value]) => value !== undefined)
  return `{${written.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
}

/** A creation for each value of this field. */
export function postEach(field: string, values: readonly unknown[]): readonly ProbeRequest[] {
  return values.map(value => post(newPet({ [field]: JSON.stringify(value) })))
}

/** Tells the operator where the animal comes from. */
export function petName(): string {
  return `conform ${crypto.randomUUID().slice(0, 8)}`
}

/** Random, near the end of the range: no animal has it. */
export function absentId(): bigint {
  return 2n ** 63n - 2n - BigInt(Math.floor(Math.random() * 1e12))
}

export const wrongBearer = `Bearer conform-wrong-key-${crypto.randomUUID()}`

/** The server to check. */
export interface Target {
  /** Without a slash at the end: `https://pets.example.com/v1`. */
  readonly baseUrl: string
  readonly key: string
  /** Send only GET and HEAD. */
  readonly readOnly: boolean
}

const responseMs = 10_000
const bodyCharsShown = 100
const rateLimitedMax = 5
const retryAfterSecondsMax = 10

/** Sends the requests of the checks. */
export class Probe {
  readonly target: Target

  constructor(target: Target) {
    this.target = target
  }

  /** Fails the check if there is no response. */
  async send(what: Sendable): Promise<Exchange> {
    const request: ProbeRequest = typeof what === 'string' ? { path: what } : what
    const reads = /^(GET|HEAD)$/.test(request.method ?? 'GET')
    if (this.target.readOnly && !reads) skip('it writes, and this run only reads')
    for (let attempt = 1; ; attempt++) {
      const exchange = await this.#exchange(request)
      const seconds = Number(exchange.header('retry-after') ?? Number.NaN)
      const retry = exchange.response.status === 429 && attempt < rateLimitedMax && seconds <= retryAfterSecondsMax
      if (!retry) return exchange
      await Bun.sleep(seconds * 1_000)
    }
  }

  async #exchange({ path, method = 'GET', headers, body, authorization }: ProbeRequest): Promise<Exchange> {
    const credential = authorization === undefined ? `Bearer ${this.target.key}` : authorization
    const shownBody = typeof body === 'string' ? body.slice(0, bodyCharsShown) : ''
    const request = `${method} ${path} ${shownBody}`.trimEnd()
    try {
      const response = await fetch(`${this.target.baseUrl}${path}`, {
        method,
        headers: { ...(credential !== null && { Authorization: credential }), ...headers },
        ...(body !== undefined && { body }),
        // A redirect may lead to another server, which must not receive the key.
        redirect: 'manual',
        signal: AbortSignal.timeout(responseMs),
      })
      return new Exchange(request, response, await response.text())
    } catch (error) {
      const { code, name } = error as { code?: string | number; name?: string }
      const cause = name === 'TimeoutError' ? 'time-out' : (code ?? name)
      return fail(`a response to ${request} within ${responseMs / 1_000} s`, `none (${cause})`)
    }
  }

  /** POST /pets with these fields. */
  create(fields?: Fields): Promise<Exchange> {
    return this.send(post(newPet(fields)))
  }

  async addPet(fields?: Fields): Promise<Pet> {
    return (await this.create(fields)).pet(201)
  }

  /** Adds animals until the catalogue has this many (at most 100), with this status if one is given. */
  async ensurePets(count: number, status?: PetStatus): Promise<readonly Pet[]> {
    const list = await this.send(`/pets?limit=100${status === undefined ? '' : `&status=${status}`}`)
    const pets = [...list.pets()]
    while (pets.length < count) {
      if (this.target.readOnly) skip('the catalogue has too few animals for it, and this run only reads')
      pets.push(await this.addPet({ status: status && JSON.stringify(status) }))
    }
    return pets
  }

  async anyPet(): Promise<Pet> {
    return (await this.ensurePets(1))[0] as Pet
  }

  /** The path of an animal of the catalogue. */
  async petPath(): Promise<string> {
    return `/pets/${(await this.anyPet()).id}`
  }
}
