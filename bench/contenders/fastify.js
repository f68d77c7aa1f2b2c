// Fastify 5 and better-sqlite3, with schemas for requests and responses, as Fastify's documentation advises.
import Database from 'better-sqlite3'
import { createApp, createSchema, getSchema, listSchema, notFound } from './fastify-app.js'
import { nextLink, openPets } from './pets.js'

const [port, file] = process.argv.slice(2)
const pets = openPets(new Database(file))
const app = createApp()

app.get('/v1/pets', { schema: listSchema }, (request, reply) => {
  const { limit, status, cursor: after } = request.query
  const page = pets.list({ limit, status, after })
  if (page.more) reply.header('Link', nextLink(limit, status, page.pets.at(-1).id))
  reply.send(page.pets)
})

app.get('/v1/pets/:petId', { schema: getSchema }, (request, reply) => {
  const pet = pets.get(request.params.petId)
  if (pet) reply.send(pet)
  else reply.code(404).send(notFound)
})

app.post('/v1/pets', { schema: createSchema }, (request, reply) => {
  const pet = pets.create(request.body)
  reply.code(201).header('Location', `/v1/pets/${pet.id}`).send(pet)
})

await app.listen({ host: '127.0.0.1', port: Number(port) })
