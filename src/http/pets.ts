import { whenReady } from '../awaitable.ts'
import { show } from '../field.ts'
import { parseInt64 } from '../int64.ts'
import { cursorFor, limitDefault, pageLimit, writeCursor } from '../page.ts'
import { type PageRequest, type PetPage, type PetStore, petStatus, petToJson, readNewPet } from '../pet.ts'
import { type Answer, problem, withHeaders } from './answer.ts'
import { readJsonBody } from './body.ts'
import type { Links } from './links.ts'
import type { Operation } from './operation.ts'
import type { Route } from './route.ts'

export interface PetRouteParts {
  readonly pets: PetStore
  readonly links: Links
}

export function petRoutes(parts: PetRouteParts): readonly Route[] {
  return [
    { path: '/pets', operations: { GET: listPets(parts), POST: createPet(parts) } },
    { path: '/pets/{petId}', operations: { GET: getPet(parts) } },
  ]
}

function listPets({ pets, links }: PetRouteParts): Operation {
  return {
    id: 'listPets',
    parameters: ['limit', 'status', 'cursor'],
    handle({ query }) {
      const limit = query.read('limit', pageLimit) ?? limitDefault
      const status = query.read('status', petStatus)
      const soundSoFar = query.problems.length === 0
      const after = query.read('cursor', cursorFor(status))
      if (query.problems.length > 0) {
        return problem(soundSoFar ? 'invalid_cursor' : 'invalid_request', query.problems.join('; '))
      }
      const page = { limit, ...(status && { status }), ...(after !== undefined && { after }) }
      return whenReady(pets.list(page), found => pageAnswer(page, found, links))
    },
  }
}

function pageAnswer({ limit, status }: PageRequest, { pets, more }: PetPage, links: Links): Answer {
  const body = `[${pets.map(petToJson).join(',')}]`
  const last = pets.at(-1)
  if (!more || !last) return { status: 200, body }
  const filter = status === undefined ? '' : `&status=${status}`
  const next = links.api(`/pets?limit=${limit}${filter}&cursor=${writeCursor(last.id, status)}`)
  return { status: 200, body, headers: { Link: `<${next}>; rel="next"` } }
}

function createPet({ pets, links }: PetRouteParts): Operation {
  return {
    id: 'createPet',
    parameters: [],
    writes: true,
    async handle({ request, query, strict }) {
      const body = await readJsonBody(request)
      if (!body.ok) return body.answer
      const read = readNewPet(body.value, strict)
      const problems = [...query.problems, ...(read.ok ? [] : read.problems)]
      if (!read.ok || problems.length > 0) return problem('invalid_request', problems.join('; '))
      const pet = await pets.create(read.pet)
      return { status: 201, body: petToJson(pet), headers: { Location: links.api(`/pets/${pet.id}`) } }
    },
  }
}

function getPet({ pets, links }: PetRouteParts): Operation {
  const deprecation = {
    Deprecation: '@1794700800',
    Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
    Link: [
      `<${links.site('/openapi.json')}>; rel="deprecation"; type="application/json"`,
      `<${links.api('/pets?status=available')}>; rel="successor-version"`,
    ].join(', '),
  }
  return {
    id: 'getPet',
    parameters: [],
    deprecated: true,
    handle({ params, query }) {
      if (query.problems.length > 0) {
        return withHeaders(problem('invalid_request', query.problems.join('; ')), deprecation)
      }
      const sent = params['petId'] ?? ''
      const id = parseInt64(sent)
      return whenReady(id === undefined ? undefined : pets.get(id), pet => {
        if (pet) return { status: 200, body: petToJson(pet), headers: deprecation }
        return withHeaders(problem('pet_not_found', `No animal has id ${show(id ?? sent)}`), deprecation)
      })
    },
  }
}
