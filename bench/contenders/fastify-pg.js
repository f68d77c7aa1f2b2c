// Fastify 5 and pg: the same routes and schemas as on SQLite.
import { absent, createApp } from './fastify-app.js'
import { createSchema, getSchema, listSchema } from './fastify-schemas.js'
import { openPool, petsIn } from './pg.js'
import { nextLink } from './rules.js'

const [port] = process.argv.slice(2)
const pets = petsIn(await openPool(process.env['DATABASE_URL']))
const app = createApp()

app.get('/v1/pets', { schema: listSchema }, async (request, reply) => {
  const { limit, status, cursor: after } = request.query
  const page = await pets.list({ limit, status, after })
  if (page.more) reply.header('Link', nextLink(limit, status, page.pets.at(-1).id))
  return page.pets
})

app.get('/v1/pets/:petId', { schema: getSchema }, async (request, reply) => {
  return (await pets.get(request.params.petId)) ?? reply.code(404).send(absent)
})

app.post('/v1/pets', { schema: createSchema }, async (request, reply) => {
  const pet = await pets.create(request.body)
  reply.code(201).header('Location', `/v1/pets/${pet.id}`)
  return pet
})

await app.listen({ host: '127.0.0.1', port: Number(port) })
