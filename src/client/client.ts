import type { NewPet, Pet, PetChanges, PetStatus } from './json.ts'
import { fieldsToJson, omitUndefined, readPet, readPets, toInt64 } from './json.ts'
import {
  type CallOptions,
  type ClientOptions,
  callOptions,
  checkNames,
  mergeSettings,
  readHeaders,
  readOptions,
  type Settings,
} from './options.ts'
import { send, sendJson } from './request.ts'

export interface ListOptions extends CallOptions {
  /** Only animals with this status. */
  readonly status?: PetStatus | undefined
  /** The largest number of animals on a page, 1 to 100. Default: 20. */
  readonly limit?: number | undefined
  /** Where to start: the `nextCursor` of a page of a list with the same status. */
  readonly cursor?: string | undefined
}

export interface CreateOptions extends CallOptions {
  /** Your name for this creation: repeating it with the same animal adds nothing. Default: a new random one. */
  readonly idempotencyKey?: string | undefined
}

export interface ChangeOptions extends CallOptions {
  /** Only if the animal has this status now; otherwise the call rejects with a RefusedError (`status_changed`). */
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

/** The response to `client.request`, also an error. */
export interface RawResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface PetPage {
  readonly pets: readonly Pet[]
  /** Starts another list at the next page, also in another process; absent on the last page. */
  readonly nextCursor?: string
}

/** Sends nothing until it is iterated or a page is requested. Each iteration starts at the first page. */
export class PetList implements AsyncIterable<Pet> {
  readonly #fetchPage: (cursor?: string) => Promise<PetPage>

  constructor(fetchPage: (cursor?: string) => Promise<PetPage>) {
    this.#fetchPage = fetchPage
  }

  /** The first page. */
  page(): Promise<PetPage> {
    return this.#fetchPage()
  }

  /** Every page; each is fetched when the loop asks for it. */
  async *pages(): AsyncIterable<PetPage> {
    let cursor: string | undefined
    do {
      const page = await this.#fetchPage(cursor)
      yield page
      cursor = page.nextCursor
    } while (cursor !== undefined)
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
  readonly #settings: Settings

  /** Throws a TypeError for invalid options. */
  constructor(options: ClientOptions) {
    this.#settings = readOptions(options)
    this.baseUrl = this.#settings.baseUrl
    this.pets = new Pets(this.#settings)
  }

  /**
   * Sends a request that this client has no method for, once. Returns any response, also an error. Rejects only without
   * a response of at most 16 MiB, or with a TypeError for invalid arguments.
   */
  async request({ method, path, query = {}, body, headers = {}, ...options }: RawRequest): Promise<RawResponse> {
    const { baseUrl } = this.#settings
    if (!/^[A-Z]+$/.test(method)) throw new TypeError('method is invalid: expected one such as GET or POST')
    const url = new URL(baseUrl + path)
    // The key goes with the request, and `..` must not lead it elsewhere.
    if (!url.href.startsWith(`${baseUrl}/`)) {
      throw new TypeError('path is invalid: expected one below the base address, such as /pets')
    }
    for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value)
    const type = body === undefined ? {} : jsonBody
    const added = { ...type, ...readHeaders(headers, ['authorization']) }
    const call = { operation: 'request', method, url: url.href, headers: added, body } as const
    const settings = mergeSettings(this.#settings, { ...options, retries: 0 }, 'method', 'path', 'query', 'body')
    return await send(call, settings, ({ status, headers, bytes }) => {
      return { status, headers, text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes) }
    })
  }
}

export class Pets {
  readonly #settings: Settings

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** Adds an animal exactly once, however many attempts that takes. */
  async create(newPet: NewPet, options: CreateOptions = {}): Promise<Pet> {
    const { idempotencyKey = newIdempotencyKey() } = options
    const url = `${this.#settings.baseUrl}/pets`
    const headers = { ...jsonBody, ...readHeaders({ 'Idempotency-Key': idempotencyKey }, []) }
    checkNames(newPet, petNames)
    const body = fieldsToJson(newPet)
    const call = { operation: 'createPet', method: 'POST', url, headers, body, successStatus: 201 } as const
    return await sendJson(call, mergeSettings(this.#settings, options, 'idempotencyKey'), readPet)
  }

  /** The animals in ascending order of id. */
  list({ limit, status, cursor: first, ...options }: ListOptions = {}): PetList {
    checkNames(options, [...callOptions, 'limit', 'status', 'cursor'])
    return new PetList(async (cursor = first) => {
      const query = String(new URLSearchParams(omitUndefined({ limit, status, cursor }) as Record<string, string>))
      const url = `${this.#settings.baseUrl}/pets${query && `?${query}`}`
      const call = { operation: 'listPets', method: 'GET', url } as const
      return await sendJson(call, mergeSettings(this.#settings, options), (body, headers) => {
        const pets = readPets(body)
        const nextCursor = headers.get('x-next-cursor')
        // The same cursor again would be an endless loop.
        if (!pets || (cursor && nextCursor === cursor)) return undefined
        return nextCursor ? { pets, nextCursor } : { pets }
      })
    })
  }

  /**
   * The animal with this id.
   * @deprecated The service removes this operation on 5 December 2030: use {@link list} with a status.
   */
  async get(id: bigint | number, options: CallOptions = {}): Promise<Pet> {
    const call = { operation: 'getPet', method: 'GET', url: this.#petUrl(id) } as const
    return await sendJson(call, mergeSettings(this.#settings, options), readPet)
  }

  /**
   * Changes an animal, and resolves with all of it. With `ifStatus`, a failure after which the change may be stored
   * rejects with an OutcomeUnknownError, without a retry.
   * @experimental
   */
  async update(id: bigint | number, changes: PetChanges, options: ChangeOptions = {}): Promise<Pet> {
    const url = this.#petUrl(id, options.ifStatus)
    const body = fieldsToJson(changes)
    checkNames(changes, petNames)
    // A repetition may be refused because of the status that the first attempt stored.
    const onlyOnce = options.ifStatus !== undefined
    const call = { operation: 'updatePet', method: 'PATCH', url, headers: jsonBody, body, onlyOnce } as const
    return await sendJson(call, mergeSettings(this.#settings, options, 'ifStatus'), readPet)
  }

  /**
   * Removes an animal for good.
   * @experimental
   */
  async remove(id: bigint | number, options: ChangeOptions = {}): Promise<void> {
    const url = this.#petUrl(id, options.ifStatus)
    const doneCode = 'pet_not_found'
    const call = { operation: 'deletePet', method: 'DELETE', url, successStatus: 204, doneCode } as const
    await sendJson(call, mergeSettings(this.#settings, options, 'ifStatus'), () => true)
  }

  #petUrl(id: bigint | number, ifStatus?: PetStatus): string {
    const condition = ifStatus === undefined ? '' : `?${new URLSearchParams({ status: ifStatus })}`
    return `${this.#settings.baseUrl}/pets/${toInt64('id', id)}${condition}`
  }
}

const jsonBody = { 'content-type': 'application/json' } as const
const petNames = ['id', 'name', 'categoryId', 'status']

/** 32 random hex digits. Browsers offer crypto.randomUUID only to pages from HTTPS or localhost. */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
}
