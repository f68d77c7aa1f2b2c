import { readHeaders, readLinks, reservedHeader } from './headers.ts'
import type { NewPet, Pet, PetChanges, PetStatus } from './json.ts'
import {
  InvalidResponse,
  newPetToJson,
  omitUndefined,
  orUndefined,
  petChangesToJson,
  readPet,
  readPets,
  toInt64,
} from './json.ts'
import type { CallOptions, RawResponse, RequestOptions, RequestSettings } from './request.ts'
import { hasKey, send, sendOnce } from './request.ts'

export interface ClientOptions extends RequestOptions {
  /** Such as `https://pets.example.com/v1`; `/v1` is added if it is missing. */
  readonly baseUrl: string | URL
}

export interface ListOptions extends CallOptions {
  /** Only animals with this status. */
  readonly status?: PetStatus | undefined
  /** The largest number of animals on a page, 1 to 100. Default: 20; for `toArray`, `max` or 100. */
  readonly limit?: number | undefined
  /** Where to start: the `nextCursor` of a page of a list with the same status. */
  readonly cursor?: string | undefined
}

type ListFilter = Omit<ListOptions, keyof CallOptions>

export interface CreateOptions extends CallOptions {
  /** Your name for this creation: repeating it adds nothing, even from another process. Default: a new random one. */
  readonly idempotencyKey?: string | undefined
}

export interface ChangeOptions extends CallOptions {
  /** Only if the animal has this status now; otherwise the call rejects with a ConflictError. */
  readonly ifStatus?: PetStatus | undefined
}

export interface RawRequest extends Omit<CallOptions, 'retries'> {
  readonly method: string
  /** Below the base address, such as `/pets`. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>> | undefined
  /** JSON, unless the headers have another Content-Type. */
  readonly body?: string | undefined
}

export interface PetPage {
  readonly pets: readonly Pet[]
  /** Starts another list at the next page, also in another process; absent on the last page. */
  readonly nextCursor?: string
  /** Fetches the next page; absent on the last page. The options override the list's, also for later pages. */
  readonly next?: (options?: CallOptions) => Promise<PetPage>
}

/** Called by `console.log` in Node, Bun and Deno. */
const inspect: unique symbol = Symbol.for('nodejs.util.inspect.custom')

/** Sends nothing until it is iterated or a page is requested. Each iteration starts at the first page. */
export class PetList implements AsyncIterable<Pet>, ListFilter {
  declare readonly status?: PetStatus
  declare readonly limit?: number
  declare readonly cursor?: string
  readonly #first: (filter: ListFilter) => Promise<PetPage>

  constructor(filter: ListFilter, first: (filter: ListFilter) => Promise<PetPage>) {
    Object.assign(this, omitUndefined(filter))
    this.#first = first
  }

  /** The first page. */
  page(): Promise<PetPage> {
    return this.#first(this)
  }

  /** Every page; each is fetched when the loop asks for it. */
  async *pages(): AsyncIterable<PetPage> {
    for (let page: PetPage | undefined = await this.page(); page; page = await page.next?.()) yield page
  }

  /** The first `max` animals, or all if there are fewer. */
  async toArray(options: { readonly max: number }): Promise<Pet[]> {
    const max = options?.max
    if (!Number.isInteger(max) || max < 1) {
      throw new TypeError(`max is ${max}: expected an integer from 1 upward; a list may not fit into memory`)
    }
    const list = new PetList({ limit: Math.min(max, 100), ...this }, this.#first)
    const found: Pet[] = []
    for await (const pet of list) if (found.push(pet) === max) break
    return found
  }

  [inspect](): string {
    return `PetList ${JSON.stringify(this)}: use for await, page() or toArray()`
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Pet> {
    // A loop, because yield* over an array takes twice the time.
    for await (const { pets } of this.pages()) for (const pet of pets) yield pet
  }
}

/** A client for one pet store and one API key. The constructor sends nothing. */
export class PetstoreClient {
  /** Ends in `/v1`. */
  readonly baseUrl: string
  readonly pets: Pets
  readonly #settings: ClientSettings

  /** Throws a TypeError for invalid options. */
  constructor(options: ClientOptions) {
    // A JavaScript program may pass nothing.
    this.#settings = readOptions({ ...options })
    this.baseUrl = this.#settings.baseUrl
    this.pets = new Pets(this.#settings)
  }

  /**
   * Sends a request that this client has no method for, once. Returns any response, also an error. Rejects only without
   * a response of at most 16 MiB, or with a TypeError for invalid arguments.
   */
  async request({ method, path, query = {}, body, headers = {}, ...options }: RawRequest): Promise<RawResponse> {
    const { baseUrl, apiKey } = this.#settings
    if (!/^[A-Z]+$/.test(method)) throw new TypeError('method is invalid: expected one such as GET or POST')
    if (body !== undefined && (typeof body !== 'string' || /^(GET|HEAD)$/.test(method))) {
      throw new TypeError('body is invalid: expected a string, and none with GET or HEAD')
    }
    const url = /^\/[^?#]*$/.test(path) ? new URL(baseUrl + path) : undefined
    // The key goes with the request, and `..` must not lead it elsewhere.
    if (!url?.href.startsWith(`${baseUrl}/`)) {
      throw new TypeError('path is invalid: expected one below the base address, such as /pets')
    }
    url.search = String(new URLSearchParams(query))
    if ([path, url.pathname, ...[...url.searchParams].flat()].some(text => hasKey(text, apiKey))) {
      throw new TypeError('path or query contains the API key: remove it')
    }
    const own = readHeaders(headers, reservedHeader)
    const isJson = body !== undefined && !('content-type' in own)
    const added = isJson ? jsonBody : {}
    const settings = mergeSettings(this.#settings, options, 'method', 'path', 'query', 'body')
    const call = { operation: 'request', method, url: url.href, headers: added, body } as const
    return await sendOnce(call, { ...settings, headers: { ...settings.headers, ...own } })
  }
}

type ClientSettings = RequestSettings & { readonly baseUrl: string }

export class Pets {
  readonly #settings: ClientSettings

  constructor(settings: ClientSettings) {
    this.#settings = settings
  }

  /** Adds an animal exactly once, however many attempts that takes. */
  async create(newPet: NewPet, options: CreateOptions = {}): Promise<Pet> {
    const { idempotencyKey: key = newIdempotencyKey() } = options
    if (!isVisibleAscii(key) || key.length > 255) {
      throw new TypeError('idempotencyKey is invalid: expected 1 to 255 visible ASCII characters')
    }
    const url = `${this.#settings.baseUrl}/pets`
    const headers = { ...jsonBody, 'Idempotency-Key': key }
    const body = newPetToJson(newPet)
    const call = { operation: 'createPet', method: 'POST', url, headers, body, successStatus: 201 } as const
    checkNames(newPet, petNames)
    return await send(call, mergeSettings(this.#settings, options, 'idempotencyKey'), body => readPet(body))
  }

  /** The animals in ascending order of id. */
  list({ limit, status, cursor, ...options }: ListOptions = {}): PetList {
    checkNames(options, [...callOptions, 'limit', 'status', 'cursor'])
    return new PetList({ limit, status, cursor }, async filter => {
      if (cursor !== undefined && (typeof cursor !== 'string' || !cursor || hasKey(cursor, this.#settings.apiKey))) {
        throw new TypeError('cursor is invalid: expected the nextCursor of a page')
      }
      return await this.#page(String(new URLSearchParams({ ...filter } as Record<string, string>)), options)
    })
  }

  /**
   * The animal with this id.
   * @deprecated The service removes this operation on 5 December 2030: use {@link list} with a status.
   */
  async get(id: bigint | number, options: CallOptions = {}): Promise<Pet> {
    const call = { operation: 'getPet', method: 'GET', url: this.#petUrl(id) } as const
    return await send(call, mergeSettings(this.#settings, options), body => readPet(body))
  }

  /**
   * Changes an animal, and resolves with all of it. With `ifStatus`, a failure after which the change may be stored
   * rejects with an OutcomeUnknownError, without a retry.
   * @experimental
   */
  async update(id: bigint | number, changes: PetChanges, options: ChangeOptions = {}): Promise<Pet> {
    const url = this.#petUrl(id, options.ifStatus)
    const body = petChangesToJson(changes)
    checkNames(changes, petNames)
    // A repetition may be refused because of the status that the first attempt stored.
    const onlyOnce = options.ifStatus !== undefined
    const call = { operation: 'updatePet', method: 'PATCH', url, headers: jsonBody, body, onlyOnce } as const
    return await send(call, mergeSettings(this.#settings, options, 'ifStatus'), body => readPet(body))
  }

  /**
   * Removes an animal for good.
   * @experimental
   */
  async remove(id: bigint | number, options: ChangeOptions = {}): Promise<void> {
    const url = this.#petUrl(id, options.ifStatus)
    const doneCode = 'pet_not_found'
    const call = { operation: 'deletePet', method: 'DELETE', url, successStatus: 204, doneCode } as const
    await send(call, mergeSettings(this.#settings, options, 'ifStatus'), () => undefined)
  }

  #petUrl(id: bigint | number, ifStatus?: PetStatus): string {
    const condition = ifStatus === undefined ? '' : `?${new URLSearchParams({ status: ifStatus })}`
    return `${this.#settings.baseUrl}/pets/${toInt64('id', id)}${condition}`
  }

  async #page(query: string, options: CallOptions): Promise<PetPage> {
    const { baseUrl, apiKey } = this.#settings
    const url = `${baseUrl}/pets${query && `?${query}`}`
    const call = { operation: 'listPets', method: 'GET', url } as const
    return await send(call, mergeSettings(this.#settings, options), (body, headers): PetPage => {
      const pets = readPets(body)
      const link = readNext(headers, url, apiKey)
      if (!link) return { pets }
      const next = (own?: CallOptions) => this.#page(link.query, { ...options, ...own })
      return { pets, ...(link.cursor && { nextCursor: link.cursor }), next }
    })
  }
}

const jsonBody = { 'Content-Type': 'application/json' } as const
const petNames = ['id', 'name', 'categoryId', 'status']
const callOptions: readonly (keyof CallOptions)[] = ['signal', 'timeoutMs', 'retries', 'headers']

/** The settings of a call, which may have options of its own. */
function mergeSettings(settings: RequestSettings, options: CallOptions, ...own: readonly string[]): RequestSettings {
  checkNames(options, [...callOptions, ...own])
  const { signal, timeoutMs = settings.timeoutMs, retries = settings.retries, headers = {} } = options
  if (signal !== undefined && typeof signal?.throwIfAborted !== 'function') {
    throw new TypeError('signal is invalid: expected an AbortSignal')
  }
  checkNumbers({ timeoutMs, retries })
  return { ...settings, signal, timeoutMs, retries, headers: { ...settings.headers, ...readHeaders(headers) } }
}

function isVisibleAscii(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)
}

/** The query of the next link. Its address may be another one, which must not get the key. */
function readNext(headers: Headers, url: string, apiKey: string) {
  const href = readLinks(headers.get('link'), url).find(({ rel }) => rel === 'next')?.href
  if (href === undefined) return undefined
  const { searchParams } = new URL(href)
  const cursor = headers.get('x-next-cursor') ?? searchParams.get('cursor')
  if (hasKey([cursor, ...[...searchParams].flat()].join(' '), apiKey)) {
    throw new InvalidResponse('the next link contains the API key')
  }
  const query = String(searchParams)
  if (query === String(new URL(url).searchParams)) throw new InvalidResponse('the next link leads to the same page')
  return { query, cursor }
}

/** 32 random hex digits. Browsers offer crypto.randomUUID only to pages from HTTPS or localhost. */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
}

/** Above this, a timer fires immediately. */
const timerMsMax = 2 ** 31 - 1

const ranges = {
  timeoutMs: [1, timerMsMax],
  retries: [0, 100],
  backoffMs: [0, timerMsMax],
  // A wait is the sum of both.
  backoffMaxMs: [0, timerMsMax / 2],
  retryAfterMaxMs: [0, timerMsMax / 2],
} as const

/** Throws a TypeError that names the option and never contains the key. */
function readOptions(options: ClientOptions): ClientSettings {
  const { apiKey, timeoutMs = 30_000, retries = 2, backoffMs = 250, backoffMaxMs = 8_000 } = options
  const { retryAfterMaxMs = 60_000, onRequest = ignore, onResponse = ignore, onRetry = ignore } = options
  // Called as a method of the global object, because browsers refuse any other `this`.
  const { headers = {}, onDeprecation = ignore, fetch = (url, init) => globalThis.fetch(url, init) } = options
  const numbers = { timeoutMs, retries, backoffMs, backoffMaxMs, retryAfterMaxMs }
  const functions = { onRequest, onResponse, onRetry, onDeprecation, fetch }
  const required = ['baseUrl', 'apiKey'] as const
  checkNames(options, [...required, 'headers', ...Object.keys(numbers), ...Object.keys(functions)])
  const missing = required.filter(name => options[name] === undefined).join(' and ')
  if (missing) throw new TypeError(`Missing options: ${missing}`)
  checkNumbers(numbers)
  for (const [name, value] of Object.entries(functions)) {
    if (typeof value !== 'function') throw new TypeError(`${name} is invalid: expected a function`)
  }
  if (options.apiKey === '') throw new TypeError('apiKey is empty: expected an API key')
  // Any other character would fail in fetch, whose message may contain the key.
  if (!isVisibleAscii(apiKey)) throw new TypeError('apiKey is invalid: expected visible ASCII characters')
  return {
    baseUrl: readBaseUrl(options.baseUrl),
    apiKey,
    headers: readHeaders(headers),
    ...numbers,
    ...functions,
  }
}

/** Throws a TypeError for a property that is not known: a JavaScript program may have mistyped it. */
function checkNames(options: object, known: readonly string[]): void {
  const letters = (name: string) => [...name.toLowerCase()].sort().join('')
  for (const name of Object.keys(options).filter(name => !known.includes(name))) {
    const meant = known.find(other => other === `${name}Ms` || letters(other) === letters(name))
    throw new TypeError(
      `Unknown property ${name}: ${meant ? `did you mean ${meant}?` : `expected ${known.join(', ')}`}`,
    )
  }
}

function ignore(): void {}

const hostAndPort =
  /^(?:(?:(https)|h\w*)?:?\/\/)?((?:localhost|[\w-]+(?:\.[\w-]+)+|[\w-]+(?=:\d))(?::\d+)?)(?:\/[^@?#]*)?$/i

/** `did you mean http://localhost:8080?` Nothing else is shown, because an invalid address may contain a password. */
export function addressSuggestion(address: string): string | undefined {
  const [, secure, host] = hostAndPort.exec(address) ?? []
  return host && `did you mean http${secure ? 's' : ''}://${host}?`
}

/** The base address, with /v1 added if it is missing. The TypeError does not show it: it may contain a password. */
function readBaseUrl(address: unknown): string {
  // Node 20 has no URL.parse.
  const url = orUndefined(() => new URL(String(address)))
  if (!url || !/^https?:$/.test(url.protocol)) {
    const advice = addressSuggestion(String(address)) ?? 'expected one such as https://example.com/v1'
    throw new TypeError(`baseUrl is not an http or https address: ${advice}`)
  }
  if (url.username + url.password + url.search + url.hash !== '') {
    throw new TypeError('baseUrl has a user, password, query or fragment: remove it')
  }
  return `${url.origin}${url.pathname}`.replace(/(\/v1)?\/*$/, '/v1')
}

function checkNumbers(numbers: Readonly<Partial<Record<keyof typeof ranges, number>>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    const [min, max] = ranges[name as keyof typeof ranges]
    const [kind, isValid] = name === 'retries' ? ['an integer', Number.isInteger] : ['a number', Number.isFinite]
    if (isValid(value) && value >= min && value <= max) continue
    throw new TypeError(`${name} is ${value}: expected ${kind} from ${min} to ${max}`)
  }
}
