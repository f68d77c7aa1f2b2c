import { parseUrl, readLinks } from './headers.ts'
import type { NewPet, Pet, PetStatus } from './json.ts'
import { InvalidResponse, newPetToJson, readPet, readPets, toInt64 } from './json.ts'
import { type Call, type CallOptions, type RequestOptions, type RequestSettings, send } from './request.ts'

export type Environment = 'production' | 'staging'

/** Either one base address, or one for each environment and the environment to use. */
export type Deployment =
  | { readonly baseUrl: string | URL; readonly baseUrls?: never; readonly environment?: never }
  | {
      readonly baseUrls: Readonly<Record<Environment, string | URL>>
      readonly environment: Environment
      readonly baseUrl?: never
    }

export type ClientOptions = Deployment & RequestOptions

export interface ListOptions extends CallOptions {
  /** Only animals with this status. */
  readonly status?: PetStatus | undefined
  /** The largest number of animals on a page, 1 to 100. The service's default is 20. */
  readonly limit?: number | undefined
}

export interface CreateOptions extends CallOptions {
  /** Your name for this creation: repeating it adds nothing, even from another process. Default: a new UUID. */
  readonly idempotencyKey?: string | undefined
}

export interface PetPage {
  readonly pets: readonly Pet[]
  /** Fetches the next page; absent on the last page. */
  readonly next?: (options?: CallOptions) => Promise<PetPage>
}

/** Sends nothing until it is iterated or a page is requested. Each iteration starts at the first page. */
export interface PetList extends AsyncIterable<Pet> {
  /** The first page. */
  page(): Promise<PetPage>
  /** Every page; each is fetched when the loop asks for it. */
  pages(): AsyncIterable<PetPage>
}

/** A client for one pet store and one API key. The constructor sends nothing. */
export class PetstoreClient {
  readonly pets: Pets

  /** Throws a TypeError for invalid options. */
  constructor(options: ClientOptions) {
    this.pets = new Pets(readOptions(options))
  }
}

/** The base address has no slash at the end. */
type ClientSettings = RequestSettings & { readonly baseUrl: string }

export class Pets {
  readonly #settings: ClientSettings

  constructor(settings: ClientSettings) {
    this.#settings = settings
  }

  /** Adds an animal exactly once, however many attempts that takes. */
  async create(newPet: NewPet, options: CreateOptions = {}): Promise<Pet> {
    const { idempotencyKey: key = newIdempotencyKey() } = options
    if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) {
      throw new TypeError('idempotencyKey is invalid: expected 1 to 255 visible ASCII characters')
    }
    return await this.#send(
      {
        operation: 'createPet',
        method: 'POST',
        url: `${this.#settings.baseUrl}/pets`,
        headers: { 'content-type': 'application/json', 'idempotency-key': key },
        body: newPetToJson(newPet),
        read: body => readPet(body),
      },
      options,
    )
  }

  /** The animals in ascending order of id. */
  list({ status, limit, ...options }: ListOptions = {}): PetList {
    const parameters = new URLSearchParams()
    if (limit !== undefined) parameters.set('limit', String(limit))
    if (status !== undefined) parameters.set('status', status)
    const query = String(parameters)
    const url = `${this.#settings.baseUrl}/pets${query && `?${query}`}`
    const first = () => this.#page(url, options)
    async function* pages(): AsyncGenerator<PetPage> {
      for (let page: PetPage | undefined = await first(); page; page = await page.next?.()) yield page
    }
    return {
      page: first,
      pages,
      async *[Symbol.asyncIterator]() {
        // A loop, because yield* over an array takes twice the time.
        for await (const { pets } of pages()) for (const pet of pets) yield pet
      },
    }
  }

  /**
   * The animal with this id.
   * @deprecated The service removes this operation on 5 December 2030: use {@link list} with a status.
   */
  async get(id: bigint | number, options: CallOptions = {}): Promise<Pet> {
    const url = `${this.#settings.baseUrl}/pets/${toInt64('id', id)}`
    return await this.#send({ operation: 'getPet', method: 'GET', url, read: body => readPet(body) }, options)
  }

  #page(url: string, options: CallOptions): Promise<PetPage> {
    const read = (body: unknown, headers: Headers): PetPage => {
      const pets = readPets(body)
      const nextUrl = nextUrlIn(headers, url, this.#settings.apiKey)
      return nextUrl === undefined ? { pets } : { pets, next: (own = options) => this.#page(nextUrl, own) }
    }
    return this.#send({ operation: 'listPets', method: 'GET', url, read }, options)
  }

  async #send<T>(request: Omit<Call<T>, 'signal' | 'timeoutMs'>, { signal, timeoutMs }: CallOptions): Promise<T> {
    const checked = readNumber('timeoutMs', timeoutMs ?? this.#settings.timeoutMs, 1, timerMsMax)
    return await send({ ...request, signal, timeoutMs: checked }, this.#settings)
  }
}

/** The key goes with every request, so a link must stay on this server. */
function nextUrlIn(headers: Headers, url: string, apiKey: string): string | undefined {
  const next = readLinks(headers.get('link'), url).find(({ rel }) => rel === 'next')?.href
  if (next === undefined) return undefined
  // Errors show URLs, but never the key.
  if (next.includes(apiKey)) throw new InvalidResponse('the next link contains the API key')
  if (next === url) throw new InvalidResponse('the next link leads to the same page')
  const { origin } = new URL(next)
  if (origin === new URL(url).origin) return next
  throw new InvalidResponse(`the next link leads to ${origin}, which must not receive the API key`)
}

/** A UUID, version 4. Browsers offer randomUUID only to pages from HTTPS or localhost. */
function newIdempotencyKey(): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  const digits = Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
  const variant = '89ab'[(bytes[8] ?? 0) & 3]
  return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, `$1-$2-4$3-${variant}$4-$5`)
}

/** Above this, a timer fires immediately. */
const timerMsMax = 2 ** 31 - 1

/** Throws a TypeError that names the option and never contains the key. */
function readOptions(options: ClientOptions): ClientSettings {
  const { apiKey, timeoutMs = 30_000, retries = 2, backoffMs = 250, backoffMaxMs = 8_000 } = options
  const { retryAfterMaxMs = 60_000, onDeprecation = () => {} } = options
  // Any other character would fail in fetch, whose message may contain the key.
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey is empty or invalid: expected visible ASCII characters')
  }
  return {
    baseUrl: readDeployment(options),
    apiKey,
    timeoutMs: readNumber('timeoutMs', timeoutMs, 1, timerMsMax),
    retries: readNumber('retries', retries, 0, 100),
    backoffMs: readNumber('backoffMs', backoffMs, 0, timerMsMax),
    // A wait is the sum of both.
    backoffMaxMs: readNumber('backoffMaxMs', backoffMaxMs, 0, timerMsMax / 2),
    retryAfterMaxMs: readNumber('retryAfterMaxMs', retryAfterMaxMs, 0, timerMsMax / 2),
    // Called as a method of the global object, because browsers refuse any other `this`.
    fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    onDeprecation,
  }
}

function readDeployment({ baseUrl, baseUrls, environment }: ClientOptions): string {
  if (baseUrls === undefined) return readBaseUrl('baseUrl', baseUrl)
  if (baseUrl !== undefined) throw new TypeError('baseUrl and baseUrls are both set: set one of them')
  if (environment !== 'production' && environment !== 'staging') {
    throw new TypeError(`environment is ${environment}: expected production or staging`)
  }
  return readBaseUrl(`baseUrls.${environment}`, baseUrls[environment])
}

/** A base address without a slash at the end. The TypeError does not show the value: it may contain a password. */
export function readBaseUrl(name: string, address: unknown): string {
  const example = 'such as https://pets.example.com/v1'
  const url = parseUrl(String(address))
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(`${name} is not an http or https address: expected one ${example}`)
  }
  if (url.username + url.password + url.search + url.hash !== '') {
    throw new TypeError(`${name} has a user, password, query or fragment: expected only the address, ${example}`)
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

function readNumber(name: string, value: number, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw new TypeError(`${name} is ${value}: expected a number from ${min} to ${max}`)
}
