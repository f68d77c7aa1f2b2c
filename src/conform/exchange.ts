import { readLinks } from '../client/headers.ts'
import { SetupError } from '../errors.ts'
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

function skipAfter(failed: string): never {
  return skip(`depends on the failed check: ${failed}`)
}

/** As the interface says: a constant of the service could be wrong. */
export const limitDefault = 20

/** The names of the checks that others depend on. If one fails, those are skipped instead of failing too. */
export const prerequisites = {
  creation: 'POST /pets is 201 with the Pet and its id',
  statuses: 'POST /pets accepts each status and returns it',
  asSent: 'POST /pets returns the name and the categoryId as sent',
  exact: 'POST /pets returns a categoryId beyond 2^53 exactly',
  list: 'GET /pets is 200 with a JSON array',
  limit: 'GET /pets?limit accepts 1, 20 and 100, and lists no more animals',
  filter: 'GET /pets?status lists only animals with that status',
  listedId: 'the id of every listed animal is an int64',
  defaultLimit: `GET /pets without a limit lists at most ${limitDefault} animals`,
  get: 'GET /pets/{petId} returns the animal as it was added or listed',
  noKey: 'GET /pets without a key is refused',
  wrongKey: 'GET /pets with a wrong key is refused',
  refusals: 'requests are refused with the status of the interface',
  jsonType: 'responses are application/json',
  errorJson: 'errors are application/json',
  errorCode: 'the code of every Error is a string',
  errorMessage: 'the message of every Error is a string',
  namedProblem: 'the error for one invalid value names it',
  nextLink: 'the next link has limit, status and a cursor',
} as const

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

export type JsonObject = Readonly<Record<string, unknown>>

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
    const parsed = parseJson(this.text)
    return parsed.ok ? parsed.value : this.fail('a JSON body')
  }

  object(): JsonObject {
    const value = this.json()
    return isJsonObject(value) ? value : this.fail('a JSON object')
  }

  /** Checks one field of a Pet or an Error. */
  expectField(object: unknown, field: string, rule: FieldRule): void {
    if (!isJsonObject(object)) this.fail('a JSON object')
    this.#expectField(object, field, rule.isValid(object[field], this.response.status), rule.expected)
  }

  /** Checks these fields of a Pet, and no other. */
  expectValues(pet: JsonObject, expected: JsonObject): void {
    for (const [field, value] of Object.entries(expected)) {
      this.#expectField(pet, field, isSame(pet[field], value), shown(value))
    }
  }

  #expectField(object: JsonObject, field: string, isValid: boolean, expected: string): void {
    const found = object[field] === undefined ? `no ${field}` : `the ${field} ${shown(object[field])}`
    this.expect(isValid, `${field}: ${expected}`, `returned ${this.response.status} with ${found}`)
  }

  petId(pet: unknown = this.object()): bigint {
    this.expectField(pet, 'id', petFields.id)
    return int64.read(Object(pet)['id']) ?? 0n
  }

  /** The items of a list, unchecked. */
  items(): readonly unknown[] {
    this.expectStatus(200)
    const items = this.json()
    return Array.isArray(items) ? items : this.fail('a JSON array')
  }

  /** The message of an Error contains these names. */
  expectMessageAbout(...names: string[]): void {
    const message = String(this.object()['message'])
    const missing = names.filter(name => !message.includes(name))
    this.expect(missing.length === 0, `a message about ${missing.join(', ')}`)
  }
}

export function isSame(one: unknown, other: unknown): boolean {
  return shown(one) === shown(other)
}

/** Equal for equal JSON values. */
function shown(value: unknown): string {
  const integer = int64.read(value)
  if (integer !== undefined) return String(integer)
  return value instanceof InexactNumber ? value.source : (JSON.stringify(value) ?? 'absent')
}

/** Checks every exchange and reports the first failure of each status, so that none hides another. */
export function expectEach(exchanges: readonly Exchange[], check: (exchange: Exchange) => void): void {
  const failures = new Map<number, { expected: string; found: string }>()
  for (const exchange of exchanges.toReversed()) {
    try {
      check(exchange)
    } catch (error) {
      if (!(error instanceof CheckEnded && error.finding.outcome === 'failed')) throw error
      failures.set(exchange.response.status, error.finding)
    }
  }
  const each = (part: 'expected' | 'found') => [...new Set([...failures.values()].map(one => one[part]))].join('; ')
  if (failures.size > 0) fail(each('expected'), each('found'))
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
  const all = Object.entries({ name: JSON.stringify(petName()), categoryId: '1', status: '"available"', ...fields })
  const written = all.filter(([, value]) => value !== undefined)
  return `{${written.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
}

const invalid = { name: 'conform invalid', categoryId: 4_000_400 }

/** A NewPet with fields that are invalid. */
export function invalidPet(fields: Fields): string {
  return newPet({ name: JSON.stringify(invalid.name), categoryId: String(invalid.categoryId), ...fields })
}

/** Whether a server accepted this animal by mistake, in this run or an earlier one. */
export function isInvalidPet(pet: unknown): boolean {
  return isJsonObject(pet) && (pet['name'] === invalid.name || pet['categoryId'] === invalid.categoryId)
}

/** An invalid creation for each value of this field. */
export function postEach(field: string, values: readonly unknown[]): readonly ProbeRequest[] {
  return values.map(value => post(invalidPet({ [field]: JSON.stringify(value) })))
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

interface Added {
  readonly id: bigint
  readonly status: unknown
}

/** Sends the requests of the checks, and remembers what later checks can use. */
export class Probe {
  readonly target: Target
  /** The names of the checks that have failed. */
  readonly failed = new Set<string>()
  /** The animals that were added, oldest first. */
  readonly added: Added[] = []
  #errors: Promise<readonly Exchange[]> | undefined
  /** The refusals with another 4xx than the contract says, by kind: `422 instead of 400`. */
  readonly otherStatuses = new Map<string, Set<string>>()

  constructor(target: Target) {
    this.target = target
  }

  /** Skips the check if the work fails and one of these checks has reported that already. */
  async step<T>(needed: readonly string[], work: () => T | Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const failed = needed.find(name => this.failed.has(name))
      const isFailure = error instanceof CheckEnded && error.finding.outcome === 'failed'
      if (failed !== undefined && isFailure) skipAfter(failed)
      throw error
    }
  }

  /** Fails the check if there is no response. */
  async send(what: Sendable): Promise<Exchange> {
    const request: ProbeRequest = typeof what === 'string' ? { path: what } : what
    const reads = /^(GET|HEAD)$/.test(request.method ?? 'GET')
    if (this.target.readOnly && !reads) skip('it writes, and this run only reads')
    for (let attempt = 1; ; attempt++) {
      const exchange = await this.#exchange(request)
      const seconds = Number(exchange.header('retry-after') ?? Number.NaN)
      if (exchange.response.status !== 429) return exchange
      if (attempt === rateLimitedMax || !(seconds <= retryAfterSecondsMax)) skip("the server's rate limit is reached")
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

  /** Sends a request that the server must refuse with this status. */
  async refused(request: Sendable, status: number, needed: readonly string[] = []): Promise<Exchange> {
    const exchange = await this.send(request)
    if (this.otherStatuses.has(`${exchange.response.status} instead of ${status}`)) skipAfter(prerequisites.refusals)
    return this.#expectRefused(exchange, status, needed)
  }

  /** Sends a request that the server must refuse. If the 4xx is not this status, remembers what was refused. */
  async refusedWith4xx(request: Sendable, status: number, what: string): Promise<void> {
    const exchange = await this.send(request)
    const found = exchange.response.status
    const kind = `${found} instead of ${status}`
    if (found < 400 || found >= 500) await this.#expectRefused(exchange, status)
    else if (found !== status) this.otherStatuses.set(kind, (this.otherStatuses.get(kind) ?? new Set()).add(what))
  }

  #expectRefused(exchange: Exchange, status: number, needed: readonly string[] = []): Promise<Exchange> {
    const isFault = exchange.response.status >= 500 && exchange.request.startsWith('POST ')
    return this.step(isFault ? [...needed, prerequisites.creation] : needed, () => exchange.expectStatus(status))
  }

  /** The response to a creation: 201 with a JSON object. */
  async create(request: Fields | ProbeRequest = {}): Promise<Exchange> {
    const created = await this.send(isRequest(request) ? request : post(newPet(request)))
    if (created.response.status === 403 && this.added.length === 0) {
      const { baseUrl } = this.target
      throw new SetupError(`${baseUrl} refuses to add animals (403): use a key that may write, or --read-only`)
    }
    const pet = await this.step([prerequisites.creation], () => created.expectStatus(201).object())
    const id = int64.read(pet['id'])
    if (id !== undefined) this.added.push({ id, status: pet['status'] })
    return created
  }

  /** Adds an animal and returns its id. */
  async addPet(fields?: Fields): Promise<bigint> {
    return this.idOf(await this.create(fields))
  }

  /** The id of a new animal. */
  idOf(created: Exchange): Promise<bigint> {
    return this.step([prerequisites.creation], () => created.petId())
  }

  /** GET /pets with this query: 200 with a JSON array. */
  async list(query: string): Promise<Exchange> {
    const list = await this.send(`/pets${query}`)
    await this.step([prerequisites.list, prerequisites.limit, prerequisites.filter], () => list.items())
    return list
  }

  idsOf(list: Exchange): Promise<readonly bigint[]> {
    return this.step([prerequisites.listedId], () => list.items().map(item => list.petId(item)))
  }

  /** Adds animals until the catalogue has this many (at most 100), with this status if one is given. */
  async ensurePets(count: number, status?: PetStatus): Promise<void> {
    const ours = this.added.filter(pet => status === undefined || pet.status === status).length
    if (ours >= count) return
    const list = await this.list(`?limit=100${status === undefined ? '' : `&status=${status}`}`)
    for (let present = list.items().length; present < count; present++) {
      if (this.target.readOnly) skip('the catalogue has too few animals for it, and this run only reads')
      const fields = status && { status: JSON.stringify(status) }
      await this.step([prerequisites.statuses], () => this.addPet(fields))
    }
  }

  /** The path of an animal of the catalogue. */
  async petPath(): Promise<string> {
    await this.ensurePets(1)
    const id = this.added[0]?.id ?? (await this.idsOf(await this.list('?limit=1')))[0]
    return `/pets/${id}`
  }

  /** Errors of every kind that the interface has. A request that the server accepts is missing: another check reports it. */
  errors(): Promise<readonly Exchange[]> {
    this.#errors ??= this.#sendInvalid()
    return this.#errors
  }

  /** Those of them that are JSON objects. */
  async readableErrors(): Promise<readonly Exchange[]> {
    const errors = (await this.errors()).filter(({ text }) => {
      const parsed = parseJson(text)
      return parsed.ok && isJsonObject(parsed.value)
    })
    return errors.length > 0 ? errors : skipAfter(prerequisites.errorJson)
  }

  async #sendInvalid(): Promise<readonly Exchange[]> {
    const absent = `/pets/${absentId()}`
    const reads = [
      { path: '/pets', authorization: null },
      { path: '/pets', authorization: wrongBearer },
      { path: absent, authorization: null },
      absent,
    ]
    const writes = [
      post(newPet(), { authorization: null }),
      post(undefined),
      post('{"name":'),
      ...postEach('name', [undefined]),
      ...postEach('status', ['lost']),
    ]
    const exchanges: Exchange[] = []
    for (const request of this.target.readOnly ? reads : [...reads, ...writes]) exchanges.push(await this.send(request))
    const errors = exchanges.filter(({ response }) => response.status >= 400)
    return errors.length > 0 ? errors : skip('the server refused none of the invalid requests')
  }
}

function isRequest(request: Fields | ProbeRequest): request is ProbeRequest {
  return 'path' in request
}
