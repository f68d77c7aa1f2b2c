import { hashSecret } from '../api-key.ts'
import { invalid, show } from '../field.ts'
import { parseInt64 } from '../int64.ts'
import { petsToJson, petToJson } from '../json.ts'
import { cursorFor, limitDefault, type Page, type PageRequest, pageLimit, writeCursor } from '../page.ts'
import { type PetStatus, petStatus, readNewPet } from '../pet.ts'
import type { Creation, PetStore } from '../store.ts'
import { readJsonBody } from './body.ts'
import type { Metrics } from './metrics.ts'
import { deprecationLinks, type OperationId, operations, parameters } from './operations.ts'
import { PageCache } from './page-cache.ts'
import { idempotencyKey, type Query } from './request.ts'
import { errorReply, headersWith, json, type Reply } from './response.ts'
import type { Operation } from './router.ts'

interface PetParts {
  readonly pets: PetStore
  readonly metrics: Metrics
  /** Begins the addresses in Link and Location: the version prefix, or a public base address that ends in it. */
  readonly baseUrl: string
  readonly bodyMs: number
}

type Handler = Operation['handle']

/** The table of operations with a handler for each. */
export function petOperations(parts: PetParts): readonly Operation[] {
  const handlers: Readonly<Record<OperationId, Handler>> = {
    listPets: listPets(parts),
    createPet: createPet(parts),
    getPet: getPet(parts),
  }
  const ids = Object.keys(operations) as OperationId[]
  return ids.map(id => ({ id, ...operations[id], handle: handlers[id] }))
}

function listPets({ pets, metrics, baseUrl }: PetParts): Handler {
  const cache = new PageCache(pets)

  async function readPage(query: Query, version: bigint | undefined): Promise<Reply> {
    const limit = query.read(parameters.limit.name, pageLimit) ?? limitDefault
    const status = query.read(parameters.status.name, petStatus)
    const isOnlyCursor = query.problems.length === 0
    const after = query.read(parameters.cursor.name, cursorFor(status))
    if (query.problems.length > 0) {
      return errorReply(isOnlyCursor ? 'invalid_cursor' : 'invalid_request', query.problems.join('; '))
    }
    const page = { limit, ...(status && { status }), ...(after !== undefined && { after }) }
    const reply = pageReply(page, await pets.list(page), baseUrl)
    if (version === undefined) return reply
    metrics.pageCacheMisses++
    cache.set(query.text, reply, version)
    return reply
  }

  return async ({ query }) => {
    const version = cache.version()
    // A strict request with an unknown parameter bypasses the cache: another request may have cached that page.
    const cached = query.problems.length === 0 ? cache.get(query.text) : undefined
    if (!cached) return readPage(query, version)
    metrics.pageCacheHits++
    return cached
  }
}

function pageReply({ limit, status }: PageRequest, { pets, more }: Page, baseUrl: string): Reply {
  const { status: ok, path } = operations.listPets
  const body = petsToJson(pets)
  const last = pets.at(-1)
  if (!more || !last) return json(ok, body)
  const cursor = writeCursor(last.id, status)
  const filter = status === undefined ? '' : `&status=${status}`
  const next = `${baseUrl}${path}?limit=${limit}${filter}&cursor=${cursor}`
  return json(ok, body, headersWith({ Link: `<${next}>; rel="next"`, 'X-Next-Cursor': cursor }))
}

function createPet({ pets, metrics, baseUrl, bodyMs }: PetParts): Handler {
  const { name } = parameters.idempotencyKey
  return async ({ request, query, caller, strict }) => {
    const body = await readJsonBody(request, bodyMs)
    if (!body.ok) return body.refusal
    const sentKey = request.headers.get(name)
    const key = sentKey === null ? undefined : idempotencyKey.read(sentKey)
    const read = readNewPet(body.value, strict)
    const problems = [...query.problems, ...(read.ok ? [] : read.problems)]
    if (sentKey !== null && key === undefined) problems.push(invalid(name, sentKey, idempotencyKey))
    if (!read.ok || problems.length > 0) return errorReply('invalid_request', problems.join('; '))
    // Only the hash is stored: it has a fixed length, and does not reveal a secret that was sent by mistake.
    const once = key && { scope: caller.keyHash, key: hashSecret(key), at: new Date() }
    const creation: Creation = once
      ? await pets.createOnce(read.pet, once)
      : { outcome: 'created', pet: await pets.create(read.pet) }
    if (creation.outcome === 'created') metrics.petsCreated++
    return creationReply(creation, baseUrl)
  }
}

function creationReply(creation: Creation, baseUrl: string): Reply {
  if (creation.outcome === 'conflict') {
    const message = 'The Idempotency-Key was used for another animal: send a new key for a new animal'
    return errorReply('idempotency_key_reused', message)
  }
  const { outcome, pet } = creation
  const headers = headersWith({
    Location: `${baseUrl}${operations.getPet.path.replace('{petId}', String(pet.id))}`,
    ...(outcome === 'replayed' && { 'Idempotency-Replayed': 'true' }),
  })
  return json(operations.createPet.status, petToJson(pet), headers)
}

function getPet({ pets, baseUrl }: PetParts): Handler {
  const { getPet: row } = operations
  const { since, sunset } = row.deprecated
  const headersFor = (status: PetStatus) =>
    headersWith({ Deprecation: since, Sunset: sunset, Link: deprecationLinks(baseUrl, status) })
  const headersOf = { available: headersFor('available'), pending: headersFor('pending'), sold: headersFor('sold') }
  const headers = headersOf.available
  return async ({ params, query }) => {
    if (query.problems.length > 0) {
      return { ...errorReply('invalid_request', query.problems.join('; ')), headers }
    }
    const sent = params[parameters.petId.name] ?? ''
    const id = parseInt64(sent)
    const pet = id === undefined ? undefined : await pets.get(id)
    if (!pet) return { ...errorReply('pet_not_found', `No animal has id ${show(id ?? sent)}`), headers }
    return json(row.status, petToJson(pet), headersOf[pet.status ?? 'available'])
  }
}
