import { UnexpectedResponseError } from './errors.ts'
import { newIdempotencyKey, readIdempotencyKey } from './idempotency-key.ts'
import { readLinks } from './links.ts'
import type { ClientSettings } from './options.ts'
import type { NewPet, Pet, PetStatus } from './pet.ts'
import { type CallOptions, send } from './request.ts'
import type { Answer } from './response.ts'
import { int64ToText, newPetToJson, readPet, readPets } from './wire.ts'

export interface ListOptions extends CallOptions {
  /** Only animals with this status. */
  readonly status?: PetStatus | undefined
  /** How many animals a page holds at most, 1 to 100; the service takes 20 where none is given. */
  readonly limit?: number | undefined
}

export interface CreateOptions extends CallOptions {
  /** Your own name for this creation, so that asking again adds nothing, even from another process. Default: a new UUID. */
  readonly idempotencyKey?: string | undefined
}

export interface PetPage {
  readonly pets: readonly Pet[]
  /** Fetches the page that follows; absent on the last one. */
  readonly next?: (options?: CallOptions) => Promise<PetPage>
}

/** Nothing is asked of the service before it is iterated or a page is asked for; each time begins at the first page. */
export interface PetList extends AsyncIterable<Pet> {
  /** The first page. */
  page(): Promise<PetPage>
  /** Every page, each fetched when the one before has been dealt with. */
  pages(): AsyncIterable<PetPage>
}

export class Pets {
  readonly #settings: ClientSettings

  constructor(settings: ClientSettings) {
    this.#settings = settings
  }

  /** Adds an animal, once, however many attempts that takes. */
  async create(newPet: NewPet, options: CreateOptions = {}): Promise<Pet> {
    const { idempotencyKey = newIdempotencyKey(), signal, timeoutMs } = options
    const headers = {
      'content-type': 'application/json',
      'idempotency-key': readIdempotencyKey(idempotencyKey),
    }
    const body = newPetToJson(newPet)
    const url = `${this.#settings.baseUrl}/pets`
    const call = { operation: 'createPet', method: 'POST', url, headers, body, expected: 201 } as const
    const answer = await send({ ...call, signal, timeoutMs }, this.#settings)
    return answer.read(readPet)
  }

  /** The animals in ascending order of id. */
  list({ status, limit, ...options }: ListOptions = {}): PetList {
    const parameters = new URLSearchParams()
    if (limit !== undefined) parameters.set('limit', String(limit))
    if (status !== undefined) parameters.set('status', status)
    const query = String(parameters)
    const url = `${this.#settings.baseUrl}/pets${query && `?${query}`}`
    return listFrom(url, options, this.#settings)
  }

  /**
   * The animal with this id.
   * @deprecated The service removes this operation on 5 December 2030: use {@link list} with a status.
   */
  async get(id: bigint | number, { signal, timeoutMs }: CallOptions = {}): Promise<Pet> {
    const url = `${this.#settings.baseUrl}/pets/${int64ToText('id', id)}`
    const call = { operation: 'getPet', method: 'GET', url, expected: 200 } as const
    const answer = await send({ ...call, signal, timeoutMs }, this.#settings)
    return answer.read(readPet)
  }
}

function listFrom(url: string, options: CallOptions, settings: ClientSettings): PetList {
  async function* pages(): AsyncGenerator<PetPage> {
    for (let page: PetPage | undefined = await fetchPage(url, options, settings); page; ) {
      yield page
      page = await page.next?.()
    }
  }
  return {
    page: () => fetchPage(url, options, settings),
    pages,
    async *[Symbol.asyncIterator]() {
      // One by one: yield* over an array takes twice the time.
      for await (const { pets } of pages()) for (const pet of pets) yield pet
    },
  }
}

async function fetchPage(url: string, options: CallOptions, settings: ClientSettings): Promise<PetPage> {
  const call = { operation: 'listPets', method: 'GET', url, expected: 200 } as const
  const answer = await send({ ...call, ...options }, settings)
  const pets = answer.read(readPets)
  const nextUrl = nextOf(answer, url, settings.apiKey)
  if (nextUrl === undefined) return { pets }
  return { pets, next: (again = options) => fetchPage(nextUrl, again, settings) }
}

function nextOf({ headers }: Answer, url: string, apiKey: string): string | undefined {
  const next = readLinks(headers.get('link'), url).find(({ rel }) => rel === 'next')
  if (!next) return undefined
  const problem = problemOf(next.href, url, apiKey)
  if (problem === undefined) return next.href
  throw new UnexpectedResponseError(`The page ${url} has a link to the next one that ${problem}`, {
    code: 'unexpected_response',
    status: 200,
    requestId: headers.get('x-request-id') ?? undefined,
  })
}

/** The key goes with the request: a link may lead on, but neither elsewhere nor in a circle. */
function problemOf(next: string, url: string, apiKey: string): string | undefined {
  // Addresses are shown in errors, and the key is not.
  if (next.includes(apiKey)) return 'holds the API key'
  const { origin } = new URL(next)
  if (origin !== new URL(url).origin) return `leads to ${origin}: another server must not get the API key`
  return next === url ? 'leads to itself' : undefined
}
