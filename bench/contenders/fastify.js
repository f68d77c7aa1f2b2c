// Fastify 5 and better-sqlite3, with schemas for requests and responses, as Fastify's documentation advises.
import Database from 'better-sqlite3'
import Fastify from 'fastify'
import { credential, errors, nextLink, openPets, port, statuses } from './pets.js'

const pets = openPets(Database)
const app = Fastify({ logger: process.env['LOG'] === 'on' })

const [integer, text] = [{ type: 'integer' }, { type: 'string' }]
const pet = { type: 'object', properties: { id: integer, name: text, categoryId: integer, status: text } }
const status = { type: 'string', enum: statuses }

const listSchema = {
  querystring: {
    type: 'object',
    properties: {
      limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
      status,
      cursor: { type: 'integer', minimum: 0, default: 0 },
    },
  },
  response: { 200: { type: 'array', items: pet } },
}

const getSchema = { params: { type: 'object', properties: { petId: integer } }, response: { 200: pet } }

const createSchema = {
  body: {
    type: 'object',
    required: ['name', 'categoryId'],
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 1_000, pattern: '\\S' },
      categoryId: { type: 'integer', minimum: -(2 ** 63), maximum: 2 ** 63 },
      status,
    },
  },
  response: { 201: pet },
}

const refuse = (reply, error) => reply.code(error.status).send(error)

app.addHook('onRequest', (request, reply, done) => {
  if (request.headers.authorization === credential) done()
  else refuse(reply, errors.unknownKey)
})

app.get('/v1/pets', { schema: listSchema }, (request, reply) => {
  const { limit, status, cursor: after } = request.query
  const page = pets.list({ limit, status, after })
  if (page.more) reply.header('Link', nextLink({ limit, status }, page.pets))
  reply.send(page.pets)
})

app.get('/v1/pets/:petId', { schema: getSchema }, (request, reply) => {
  const pet = pets.get(request.params.petId)
  if (pet) reply.send(pet)
  else refuse(reply, errors.notFound)
})

app.post('/v1/pets', { schema: createSchema }, (request, reply) => {
  const pet = pets.create(request.body)
  reply.code(201).header('Location', `/v1/pets/${pet.id}`).send(pet)
})

await app.listen({ host: '127.0.0.1', port })
