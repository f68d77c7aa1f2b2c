import { hashSecret } from '../api-key.ts'
import { show } from '../field.ts'
import { parseInt64 } from '../int64.ts'
import { petsToJson, petToJson } from '../json.ts'
import { cursorFor, limitDefault, type Page, type PageRequest, pageLimit, writeCursor } from '../page.ts'
import { type Pet, type PetStatus, petStatus, petStatuses, readNewPet, readPetChanges } from '../pet.ts'
import type { Change, Creation, PetStore } from '../store-contract.ts'
import { readJsonBody } from './body.ts'
import type { Exchange } from './exchange.ts'
import type { Metrics } from './metrics.ts'
import {
  deprecationLinks,
  type OperationId,
  type OperationRow,
  operations,
  parameters,
  versionPrefix,
} from './operations.ts'
import { idempotencyKey, prefersStrict, Query } from './query.ts'
import { type HeaderValues, headersWith, json, noContent, Refusal, type Reply } from './response.ts'
import type { Params, Route } from './router.ts'

/** Answers a request for an operation, after all checks that operations share. */
type Handler = (query: Query, exchange: Exchange, params: Params) => Promise<Reply>

/**
 * A route for each operation of the table. `baseUrl` begins the addresses in Link and Location: the version prefix, or a
 * public base address that ends in it.
 */
export function createPetRoutes(pets: PetStore, baseUrl: string, metrics: Metrics): readonly Route[] {
  const handlers: Readonly<Record<OperationId, Handler>> = {
    listPets: listPets(pets, baseUrl),
    createPet: createPet(pets, baseUrl, metrics),
    getPet: getPet(pets, baseUrl),
    updatePet: updatePet(pets, metrics),
    deletePet: deletePet(pets, metrics),
  }
  return Object.entries(handlers).map(([id, handler]) => createRoute(id as OperationId, handler))
}

/** Does what all operations do, before the handler. */
function createRoute(operationId: OperationId, handler: Handler): Route {
  const { method, path, access, parameters: known, deprecated }: OperationRow = operations[operationId]
  const handle: Route['handle'] = (exchange, params) => {
    if (deprecated && exchange.caller.usage) exchange.caller.usage.deprecatedUses++
    const query = new Query(exchange.query)
    exchange.isStrict = prefersStrict(exchange.request.headers.get(parameters.prefer.name))
    if (exchange.isStrict) {
      exchange.headers['Preference-Applied'] = 'handling=strict'
      query.refuseUnknown(known)
    }
    return handler(query, exchange, params)
  }
  return { method, path: `${versionPrefix}${path}`, access, operationId, handle }
}

function listPets(pets: PetStore, baseUrl: string): Handler {
  /** Of first pages, as long as the store returns the same object. */
  const replies = new WeakMap<Page, Reply>()

  return async query => {
    const request = readPageRequest(query)
    const page = await pets.list(request)
    const known = replies.get(page)
    if (known) return known
    const reply = replyWithPage(request, page, baseUrl)
    if (request.after === undefined) replies.set(page, reply)
    return reply
  }
}

function readPageRequest(query: Query): PageRequest {
  const limit = query.read(parameters.limit.name, pageLimit) ?? limitDefault
  const status = query.read(parameters.status.name, petStatus)
  const { name } = parameters.cursor
  const cursor = query.readText(name)
  // To start again at the first page helps only if nothing else is wrong.
  const code = query.problems.length === 0 ? 'invalid_cursor' : 'invalid_request'
  const after = cursor === undefined ? undefined : query.check(name, cursor, cursorFor(status))
  if (query.problems.length > 0) throw new Refusal(code, query.problems.join('; '))
  return { limit, status, after }
}

function replyWithPage({ limit, status }: PageRequest, { pets, more }: Page, baseUrl: string): Reply {
  const { status: ok, path } = operations.listPets
  const body = petsToJson(pets)
  const last = pets.at(-1)
  if (!more || !last) return json(ok, body)
  const cursor = writeCursor(last.id, status)
  const filter = status === undefined ? '' : `&status=${status}`
  const next = `${baseUrl}${path}?limit=${limit}${filter}&cursor=${cursor}`
  return json(ok, body, headersWith({ Link: `<${next}>; rel="next"`, 'X-Next-Cursor': cursor }))
}

function createPet(pets: PetStore, baseUrl: string, metrics: Metrics): Handler {
  const { body: bodyRow, status } = operations.createPet
  const { name } = parameters.idempotencyKey
  return async (query, { request, caller, isStrict }) => {
    const body = await readJsonBody(request, bodyRow)
    const sentKey = request.headers.get(name)
    const key = sentKey === null ? undefined : query.check(name, sentKey, idempotencyKey)
    const read = readNewPet(body, isStrict)
    const problems = [...query.problems, ...(read.ok ? [] : read.problems)]
    if (!read.ok || problems.length > 0) throw new Refusal('invalid_request', problems.join('; '))
    // Only the hash is stored: it has a fixed length, and does not reveal a secret that was sent by mistake.
    const once = key && { scope: caller.keyHash, key: hashSecret(key), at: new Date() }
    const creation: Creation = once
      ? await pets.createOnce(read.pet, once)
      : { outcome: 'created', pet: await pets.create(read.pet) }
    if (creation.outcome === 'conflict') throw new Refusal('idempotency_key_reused')
    const { outcome, pet } = creation
    if (outcome === 'created') metrics.countPet('createPet')
    const headers = headersWith({
      Location: `${baseUrl}${operations.getPet.path.replace('{petId}', String(pet.id))}`,
      ...(outcome === 'replayed' && { 'Idempotency-Replayed': 'true' }),
    })
    return json(status, petToJson(pet), headers)
  }
}

function getPet(pets: PetStore, baseUrl: string): Handler {
  const { getPet: row } = operations
  const { since, sunset } = row.deprecated
  const announce = (status?: PetStatus) => {
    return { Deprecation: since, Sunset: sunset, Link: deprecationLinks(baseUrl, status) }
  }
  const refusalHeaders = announce()
  const headersBy = new Map([undefined, ...petStatuses].map(status => [status, headersWith(announce(status))]))
  return async (query, _exchange, params) => {
    if (query.problems.length > 0) throw new Refusal('invalid_request', query.problems.join('; '), refusalHeaders)
    const pet = await pets.get(readPetId(params, refusalHeaders))
    if (!pet) throw petNotFound(params, refusalHeaders)
    return json(row.status, petToJson(pet), headersBy.get(pet.status))
  }
}

function readPetId(params: Params, refusalHeaders?: HeaderValues): bigint {
  const id = parseInt64(params[parameters.petId.name] ?? '')
  if (id === undefined) throw petNotFound(params, refusalHeaders)
  return id
}

function petNotFound(params: Params, refusalHeaders?: HeaderValues): Refusal {
  const sent = params[parameters.petId.name] ?? ''
  return new Refusal('pet_not_found', `No animal has id ${show(parseInt64(sent) ?? sent)}`, refusalHeaders)
}

function updatePet(pets: PetStore, metrics: Metrics): Handler {
  const { body: bodyRow, status } = operations.updatePet
  return async (query, { request, isStrict }, params) => {
    const read = readPetChanges(await readJsonBody(request, bodyRow), isStrict)
    const ifStatus = query.read(parameters.ifStatus.name, petStatus)
    const problems = [...query.problems, ...(read.ok ? [] : read.problems)]
    if (!read.ok || problems.length > 0) throw new Refusal('invalid_request', problems.join('; '))
    const pet = expectChanged(await pets.update(readPetId(params), read.changes, ifStatus), params, ifStatus)
    metrics.countPet('updatePet')
    return json(status, petToJson(pet))
  }
}

function deletePet(pets: PetStore, metrics: Metrics): Handler {
  return async (query, _exchange, params) => {
    const ifStatus = query.read(parameters.ifStatus.name, petStatus)
    if (query.problems.length > 0) throw new Refusal('invalid_request', query.problems.join('; '))
    expectChanged(await pets.remove(readPetId(params), ifStatus), params, ifStatus)
    metrics.countPet('deletePet')
    return noContent()
  }
}

function expectChanged(change: Change, params: Params, ifStatus: PetStatus | undefined): Pet {
  if (change.outcome === 'no-such-pet') throw petNotFound(params)
  const { outcome, pet } = change
  if (outcome === 'changed') return pet
  const now = pet.status === undefined ? 'has no status' : `is ${pet.status}`
  throw new Refusal('status_changed', `Animal ${pet.id} ${now} now, not ${ifStatus}: nothing has changed`)
}
