import { hashApiKey } from '../api-key.ts'
import { whenReady } from '../awaitable.ts'
import { show } from '../field.ts'
import { parseInt64 } from '../int64.ts'
import type { PageRequest, PetPage } from '../page.ts'
import { cursorFor, limitDefault, pageLimit, writeCursor } from '../page.ts'
import { type Pet, petStatus, petToJson, readNewPet } from '../pet.ts'
import type { Awaitable, Creation, PetStore } from '../store.ts'
import { type Answer, prepareHeaders, problem, withHeaders } from './answer.ts'
import { createAnswerCache } from './answer-cache.ts'
import { readJsonBody } from './body.ts'
import { readIdempotencyKey } from './idempotency-key.ts'
import type { Links } from './links.ts'
import type { Metrics } from './metrics.ts'
import type { Call, Operation } from './operation.ts'
import type { Route } from './route.ts'

export interface PetRouteParts {
  readonly pets: PetStore
  readonly links: Links
  readonly metrics: Metrics
  /** Where a person reads about the deprecated operation. */
  readonly documentation: { readonly path: string; readonly type: string }
}

const pageBytesMax = 16 * 1024 ** 2

export function petRoutes(parts: PetRouteParts): readonly Route[] {
  return [
    { path: '/pets', operations: { GET: listPets(parts), POST: createPet(parts) } },
    { path: '/pets/{petId}', operations: { GET: getPet(parts) } },
  ]
}

function listPets({ pets, links, metrics }: PetRouteParts): Operation {
  const cache = createAnswerCache({ pets, bytesMax: pageBytesMax, served: metrics.pageServed })
  const list = ({ query }: Call): Awaitable<Answer> => {
    const limit = query.read('limit', pageLimit) ?? limitDefault
    const status = query.read('status', petStatus)
    const soundSoFar = query.problems.length === 0
    const after = query.read('cursor', cursorFor(status))
    if (query.problems.length > 0) {
      return problem(soundSoFar ? 'invalid_cursor' : 'invalid_request', query.problems.join('; '))
    }
    const page = { limit, ...(status && { status }), ...(after !== undefined && { after }) }
    return whenReady(pets.list(page), found => pageAnswer(page, found, links))
  }
  return {
    id: 'listPets',
    parameters: ['limit', 'status', 'cursor'],
    // Strict handling refuses what the kept answer was given in spite of.
    handle: call => (call.strict ? list(call) : cache.answer(call.query.text, () => list(call))),
  }
}

function pageAnswer({ limit, status }: PageRequest, { pets, more }: PetPage, links: Links): Answer {
  const body = `[${pets.map(petToJson).join(',')}]`
  const last = pets.at(-1)
  if (!more || !last) return { status: 200, body }
  const filter = status === undefined ? '' : `&status=${status}`
  const next = links.api(`/pets?limit=${limit}${filter}&cursor=${writeCursor(last.id, status)}`)
  return { status: 200, body, prepared: prepareHeaders({ Link: `<${next}>; rel="next"` }) }
}

function createPet({ pets, links, metrics }: PetRouteParts): Operation {
  return {
    id: 'createPet',
    parameters: [],
    writes: true,
    async handle({ request, query, caller, strict }) {
      const body = await readJsonBody(request)
      if (!body.ok) return body.answer
      const read = readNewPet(body.value, strict)
      const key = readIdempotencyKey(request.headers.get('idempotency-key'))
      const problems = [
        ...query.problems,
        ...(read.ok ? [] : read.problems),
        ...(key.ok ? [] : [key.problem]),
      ]
      if (!read.ok || !key.ok || problems.length > 0) return problem('invalid_request', problems.join('; '))
      if (key.value === undefined) {
        const pet = await pets.create(read.pet)
        metrics.petCreated()
        return createdAnswer(pet, links)
      }
      // By its hash: always of one length, and a secret that was sent here by mistake is not kept.
      const once = { scope: caller.scope, key: hashApiKey(key.value), at: new Date() }
      const creation = await pets.createOnce(read.pet, once)
      if (creation.outcome === 'created') metrics.petCreated()
      return onceAnswer(creation, links)
    },
  }
}

function createdAnswer(pet: Pet, links: Links): Answer {
  return { status: 201, body: petToJson(pet), headers: { Location: links.api(`/pets/${pet.id}`) } }
}

function onceAnswer(creation: Creation, links: Links): Answer {
  switch (creation.outcome) {
    case 'created':
      return createdAnswer(creation.pet, links)
    case 'replayed':
      return withHeaders(createdAnswer(creation.pet, links), { 'Idempotency-Replayed': 'true' })
    case 'conflict':
      return problem(
        'idempotency_key_reused',
        'The Idempotency-Key was used for another animal: send a new key for a new animal',
      )
  }
}

function getPet({ pets, links, documentation }: PetRouteParts): Operation {
  const prepared = prepareHeaders({
    Deprecation: '@1794700800',
    Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
    Link: [
      `<${links.site(documentation.path)}>; rel="deprecation"; type="${documentation.type}"`,
      `<${links.api('/pets?status=available')}>; rel="successor-version"`,
    ].join(', '),
  })
  const get = (sent: string): Awaitable<Answer> => {
    const id = parseInt64(sent)
    return whenReady(id === undefined ? undefined : pets.get(id), pet => {
      if (pet) return { status: 200, body: petToJson(pet), prepared }
      return { ...problem('pet_not_found', `No animal has id ${show(id ?? sent)}`), prepared }
    })
  }
  return {
    id: 'getPet',
    parameters: [],
    deprecated: true,
    handle({ params, query }) {
      if (query.problems.length > 0) {
        return { ...problem('invalid_request', query.problems.join('; ')), prepared }
      }
      return get(params['petId'] ?? '')
    },
  }
}
