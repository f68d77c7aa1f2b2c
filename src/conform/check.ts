import { readLinks } from '../client/index.ts'
import { int64 } from '../field.ts'
import { InexactNumber, isJsonObject, parseJson } from '../int64.ts'
import { type Pet, type PetStatus, petStatus } from '../pet.ts'

/** The outcome of a check. */
export type Finding =
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'failed'; readonly expected: string; readonly found: string }
  | { readonly outcome: 'skipped'; readonly why: string }

/** One rule. It depends on no other check and accepts any content of the catalogue. */
export interface Check {
  readonly name: string
  /** `contract`: the interface requires it. `decision`: our choice where the interface is silent. */
  readonly rule: 'contract' | 'decision'
  /** The section of the documentation with the rule. */
  readonly where: string
  /** Whether it sends more than GET and HEAD. */
  readonly writes: boolean
  /** Does not reject, whatever the server does. */
  run(probe: Probe): Promise<Finding>
}

/** Ends a check from within its helpers, so that the check itself reads like its rule. */
class CheckEnded extends Error {
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

type CheckBody = (probe: Probe) => Promise<void>

interface Rules {
  /** A check that only reads. If the run may write, it may add the animals that it needs. */
  reads(name: string, body: CheckBody): Check
  writes(name: string, body: CheckBody): Check
  /** Each of the requests gets an Error with this status, and its message contains the names. */
  refuses(what: string, status: number, requests: readonly Request[], ...names: string[]): Check
}

/** Makes the checks for one section of docs/interface.md. A check passes if its body returns. */
export function rules(rule: Check['rule'], heading: string): Rules {
  const where = `docs/interface.md, ${heading}`
  const check = (name: string, writes: boolean, body: CheckBody): Check => ({
    name,
    rule,
    where,
    writes,
    run: async probe => (writes && probe.readOnly ? readOnlyRun : await findingOf(body, probe)),
  })
  return {
    reads: (name, body) => check(name, false, body),
    writes: (name, body) => check(name, true, body),
    refuses(what, status, requests, ...names) {
      const about = names.length === 0 ? '' : ` with a message about ${names.join(', ')}`
      return check(`${what} is ${status}${about}`, requests.some(writes), async probe => {
        for (const request of requests) (await probe.send(request)).error(status, ...names)
      })
    },
  }
}

const readOnlyRun: Finding = { outcome: 'skipped', why: 'it writes, and this run only reads' }

async function findingOf(body: CheckBody, probe: Probe): Promise<Finding> {
  try {
    await body(probe)
    return { outcome: 'passed' }
  } catch (error) {
    if (error instanceof CheckEnded) return error.finding
    throw error
  }
}

export interface Request {
  /** Under the base address. */
  readonly path: string
  /** Default: GET. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer>
  /** The Authorization header; null sends none. Default: the key. */
  readonly authorization?: string | null
}

/** POST /pets with a JSON body, unless the options change that. */
export function post(body: Request['body'], { headers, ...options }: Partial<Request> = {}): Request {
  const json = { 'Content-Type': 'application/json', ...headers }
  return { path: '/pets', method: 'POST', headers: json, ...(body !== undefined && { body }), ...options }
}

function writes({ method = 'GET' }: Request): boolean {
  return method !== 'GET' && method !== 'HEAD'
}

/** A NewPet as JSON. Values are JSON text, so that a check can send invalid ones; undefined omits the field. */
export function newPet(fields: Readonly<Record<string, string | undefined>> = {}): string {
  const all = { name: JSON.stringify(petName()), categoryId: '1', ...fields }
  const written = Object.entries(all).filter(([, value]) => value !== undefined)
  return `{${written.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
}

/** Tells the operator where the animal comes from. */
export function petName(): string {
  return `conform ${crypto.randomUUID().slice(0, 8)}`
}

/** Random, near the end of the range: no animal has it. */
export function absentId(): bigint {
  return 2n ** 63n - 2n - BigInt(Math.floor(Math.random() * 1e12))
}

export const wrongCredential = `Bearer conform-wrong-key-${crypto.randomUUID()}`

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
export class Probe implements Target {
  readonly baseUrl: string
  readonly key: string
  readonly readOnly: boolean

  constructor({ baseUrl, key, readOnly }: Target) {
    this.baseUrl = baseUrl
    this.key = key
    this.readOnly = readOnly
  }

  /** A string is the path of a GET. Fails the check if there is no response. */
  async send(what: string | Request): Promise<Exchange> {
    const request = typeof what === 'string' ? { path: what } : what
    if (this.readOnly && writes(request)) {
      skip('the catalogue has too few animals for it, and this run only reads')
    }
    for (let attempt = 1; ; attempt++) {
      const exchange = await this.#exchange(request)
      const seconds = Number(exchange.headers.get('retry-after') ?? Number.NaN)
      const retry = exchange.status === 429 && attempt < rateLimitedMax && seconds <= retryAfterSecondsMax
      if (!retry) return exchange
      await Bun.sleep(seconds * 1_000)
    }
  }

  async #exchange({ path, method = 'GET', headers, body, authorization }: Request): Promise<Exchange> {
    const credential = authorization === undefined ? `Bearer ${this.key}` : authorization
    const shownBody = typeof body === 'string' ? ` ${body.slice(0, bodyCharsShown).trimEnd()}` : ''
    const request = `${method} ${path}${shownBody}`
    const url = `${this.baseUrl}${path}`
    try {
      const response = await fetch(url, {
        method,
        headers: { ...(credential !== null && { Authorization: credential }), ...headers },
        ...(body !== undefined && { body }),
        // A redirect may lead to another server, which must not receive the key.
        redirect: 'manual',
        signal: AbortSignal.timeout(responseMs),
      })
      return new Exchange(request, url, response, await response.text())
    } catch (error) {
      const { code, name } = error as { code?: string | number; name?: string }
      const cause = name === 'TimeoutError' ? 'time-out' : (code ?? name)
      return fail(`a response to ${request} within ${responseMs / 1_000} s`, `none (${cause})`)
    }
  }

  /** POST /pets with these fields. */
  create(fields?: Readonly<Record<string, string>>): Promise<Exchange> {
    return this.send(post(newPet(fields)))
  }

  async addPet(fields?: Readonly<Record<string, string>>): Promise<Pet> {
    return (await this.create(fields)).pet(201)
  }

  /** An animal of the catalogue; adds one if the catalogue is empty. */
  async anyPet(): Promise<Pet> {
    const [first] = (await this.send('/pets?limit=1')).pets()
    return first ?? (await this.addPet())
  }

  /** Adds animals until the catalogue has this many (at most 100), with this status if one is given. */
  async ensurePets(count: number, status?: PetStatus): Promise<void> {
    const filter = status === undefined ? '' : `&status=${status}`
    const pets = (await this.send(`/pets?limit=100${filter}`)).pets()
    for (let missing = count - pets.length; missing > 0; missing--) {
      await this.addPet(status === undefined ? {} : { status: JSON.stringify(status) })
    }
  }
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
