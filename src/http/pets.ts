import { hashSecret } from '../api-key.ts'
import { type Field, invalid, show } from '../field.ts'
import { parseInt64 } from '../int64.ts'
import { cursorFor, limitDefault, type PageRequest, type PetPage, pageLimit, writeCursor } from '../page.ts'
import { type Pet, petStatus, petToJson, readNewPet } from '../pet.ts'
import type { Creation, PetStore } from '../store.ts'
import { readJsonBody } from './body.ts'
import type { Metrics } from './metrics.ts'
import { PageCache } from './page-cache.ts'
import type { Query } from './request.ts'
import { headersWith, json, problem, type Reply, versionPrefix } from './response.ts'
import type { Operation, Route } from './router.ts'

export interface PetRouteParts {
  readonly pets: PetStore
  readonly metrics: Metrics
  /** Begins the addresses in Link and Location: the version prefix, or a public base address that ends in it. */
  readonly baseUrl: string
}

export function petRoutes(parts: PetRouteParts): readonly Route[] {
  return [
    { path: '/pets', operations: { GET: listPets(parts), POST: createPet(parts) } },
    { path: '/pets/{petId}', operations: { GET: getPet(parts) } },
  ]
}

function listPets({ pets, metrics, baseUrl }: PetRouteParts): Operation {
  const cache = new PageCache(pets)

  function cachedPage(query: string): Reply | undefined {
    const page = cache.get(query)
    if (page) metrics.pageCacheHits++
    return page
  }

  async function readPage(query: Query, version: unknown): Promise<Reply> {
    const request = readPageRequest(query)
    if (!request.ok) return request.refusal
    const canonical = version === undefined ? undefined : canonicalQuery(request.page)
    const cached = canonical === undefined ? undefined : cachedPage(canonical)
    if (cached) return cached
    const found = pets.list(request.page)
    const reply = pageReply(request.page, found instanceof Promise ? await found : found, baseUrl)
    if (canonical !== undefined) {
      metrics.pageCacheMisses++
      cache.set(canonical, reply, version)
    }
    return reply
  }

  return {
    id: 'listPets',
    access: 'read',
    parameters: ['limit', 'status', 'cursor'],
    handle({ query }) {
      const version = cache.version()
      // Strict requests may use the cache: a canonical query has only known parameters.
      return cachedPage(query.text) ?? readPage(query, version)
    },
  }
}

/** A page's query as our own links spell it; the first page needs no limit if it is the default. */
function canonicalQuery({ limit, status, after }: PageRequest): string {
  const filter = status === undefined ? [] : [`status=${status}`]
  if (after !== undefined) return [`limit=${limit}`, ...filter, `cursor=${writeCursor(after, status)}`].join('&')
  return [...(limit === limitDefault ? [] : [`limit=${limit}`]), ...filter].join('&')
}

type ReadPageRequest =
  | { readonly ok: true; readonly page: PageRequest }
  | { readonly ok: false; readonly refusal: Reply }

function readPageRequest(query: Query): ReadPageRequest {
  const limit = query.read('limit', pageLimit) ?? limitDefault
  const status = query.read('status', petStatus)
  const othersAreValid = query.problems.length === 0
  const after = query.read('cursor', cursorFor(status))
  if (query.problems.length > 0) {
    const code = othersAreValid ? 'invalid_cursor' : 'invalid_request'
    return { ok: false, refusal: problem(code, query.problems.join('; ')) }
  }
  return { ok: true, page: { limit, ...(status && { status }), ...(after !== undefined && { after }) } }
}

function pageReply(page: PageRequest, { pets, more }: PetPage, baseUrl: string): Reply {
  const body = `[${pets.map(petToJson).join(',')}]`
  const last = pets.at(-1)
  if (!more || !last) return json(200, body)
  const cursor = writeCursor(last.id, page.status)
  const next = `${baseUrl}/pets?${canonicalQuery({ ...page, after: last.id })}`
  return json(200, body, headersWith({ Link: `<${next}>; rel="next"`, 'X-Next-Cursor': cursor }))
}

function createPet({ pets, metrics, baseUrl }: PetRouteParts): Operation {
  return {
    id: 'createPet',
    access: 'write',
    parameters: [],
    async handle({ request, query, caller, strict }) {
      const body = await readJsonBody(request)
      if (!body.ok) return body.refusal
      const sentKey = request.headers.get('idempotency-key')
      const key = sentKey === null ? undefined : idempotencyKey.read(sentKey)
      const read = readNewPet(body.value, strict)
      const problems = [...query.problems, ...(read.ok ? [] : read.problems)]
      if (sentKey !== null && key === undefined) {
        problems.push(invalid('Idempotency-Key', sentKey, idempotencyKey))
      }
      if (!read.ok || problems.length > 0) return problem('invalid_request', problems.join('; '))
      // Only the hash is stored: it has a fixed length, and does not reveal a secret that was sent by mistake.
      const once = key && { scope: caller.scope, key: hashSecret(key), at: new Date() }
      const creation: Creation = once
        ? await pets.createOnce(read.pet, once)
        : { outcome: 'created', pet: await pets.create(read.pet) }
      if (creation.outcome === 'created') metrics.petsCreated++
      return creationReply(creation, baseUrl)
    },
  }
}

function creationReply(creation: Creation, baseUrl: string): Reply {
  if (creation.outcome === 'conflict') {
    const message = 'The Idempotency-Key was used for another animal: send a new key for a new animal'
    return problem('idempotency_key_reused', message)
  }
  const { outcome, pet } = creation
  const headers = headersWith({
    Location: `${baseUrl}/pets/${pet.id}`,
    ...(outcome === 'replayed' && { 'Idempotency-Replayed': 'true' }),
  })
  return json(201, petToJson(pet), headers)
}

function getPet({ pets, baseUrl }: PetRouteParts): Operation {
  const siteUrl = baseUrl.slice(0, -versionPrefix.length)
  // Announced on 15 November 2026; the interface gives the date of removal.
  const headers = headersWith({
    Deprecation: '@1794700800',
    Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
    Link: [
      `<${siteUrl}/docs#/pets/getPet>; rel="deprecation"; type="text/html"`,
      `<${baseUrl}/pets?status=available>; rel="successor-version"`,
    ].join(', '),
  })
  return {
    id: 'getPet',
    access: 'read',
    parameters: [],
    deprecated: true,
    handle({ params, query }) {
      if (query.problems.length > 0) {
        return { ...problem('invalid_request', query.problems.join('; ')), headers }
      }
      const sent = params['petId'] ?? ''
      const id = parseInt64(sent)
      const reply = (pet: Pet | undefined): Reply =>
        pet
          ? json(200, petToJson(pet), headers)
          : { ...problem('pet_not_found', `No animal has id ${show(id ?? sent)}`), headers }
      const found = id === undefined ? undefined : pets.get(id)
      // Without a promise this request costs a fifth less.
      return found instanceof Promise ? found.then(reply) : reply(found)
    },
  }
}

const idempotencyKeyCharsMax = 255
const bareKey = `[!#-~][!-~]{0,${idempotencyKeyCharsMax - 1}}`
const quotedKey = `"(?:[!#-\\[\\]-~]|\\\\["\\\\]){1,${idempotencyKeyCharsMax}}"`
const idempotencyKeyPattern = new RegExp(`^(?:${bareKey}|${quotedKey})$`)
/** With quotes. An escaped character counts twice. */
const idempotencyHeaderCharsMax = idempotencyKeyCharsMax + 2

/** Bare or in quotes: both spellings are the same key. */
export const idempotencyKey: Field<string> = {
  schema: { type: 'string', minLength: 1, maxLength: idempotencyHeaderCharsMax, pattern: idempotencyKeyPattern.source },
  expected: `1 to ${idempotencyKeyCharsMax} visible ASCII characters, bare or in double quotes`,
  read(value) {
    if (typeof value !== 'string' || value.length > idempotencyHeaderCharsMax) return undefined
    if (!idempotencyKeyPattern.test(value)) return undefined
    return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value
  },
}
