// Fastify 5 and better-sqlite3, as Fastify's own documentation advises: with schemas both ways.
import { openPets } from './better-sqlite3.js'
import { absent, createApp } from './fastify-app.js'
import { createSchema, getSchema, listSchema } from './fastify-schemas.js'
import { nextLink } from './rules.js'

const [port, file] = process.argv.slice(2)
const pets = openPets(file)
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
  else reply.code(404).send(absent)
})

app.post('/v1/pets', { schema: createSchema }, (request, reply) => {
  const pet = pets.create(request.body)
  reply.code(201).header('Location', `/v1/pets/${pet.id}`).send(pet)
})

await app.listen({ host: '127.0.0.1', port: Number(port) })
