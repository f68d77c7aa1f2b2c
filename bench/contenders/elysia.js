// Elysia on Bun with bun:sqlite: schemas for requests, and the key in beforeHandle, as Elysia's documentation advises.
import { Database } from 'bun:sqlite'
import { Elysia, t } from 'elysia'
import { credential, errors, nextLink, openPets, port, statuses } from './pets.js'

const pets = openPets(Database)

const status = t.Optional(t.Union(statuses.map(each => t.Literal(each))))
const page = t.Object({
  limit: t.Integer({ minimum: 1, maximum: 100, default: 20 }),
  status,
  cursor: t.Integer({ minimum: 0, default: 0 }),
})
const newPet = t.Object({
  name: t.String({ minLength: 1, maxLength: 1_000, pattern: '\\S' }),
  categoryId: t.Integer({ minimum: -(2 ** 63), maximum: 2 ** 63 }),
  status,
})

new Elysia()
  .onError(({ code, status }) => {
    if (code === 'VALIDATION' || code === 'PARSE') return status(400, errors.invalid)
  })
  .onBeforeHandle(({ request, status }) => {
    if (request.headers.get('authorization') !== credential) return status(401, errors.unknownKey)
  })
  .get(
    '/v1/pets',
    ({ query: { limit, status, cursor }, set }) => {
      const found = pets.list({ limit, status, after: cursor })
      if (found.more) set.headers['Link'] = nextLink({ limit, status }, found.pets)
      return found.pets
    },
    { query: page },
  )
  .get('/v1/pets/:petId', ({ params, status }) => pets.get(params.petId) ?? status(404, errors.notFound), {
    params: t.Object({ petId: t.Integer() }),
  })
  .post(
    '/v1/pets',
    ({ body, set, status }) => {
      const pet = pets.create(body)
      set.headers['Location'] = `/v1/pets/${pet.id}`
      return status(201, pet)
    },
    { body: newPet },
  )
  .listen({ hostname: '127.0.0.1', port })
