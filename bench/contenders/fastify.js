// Fastify with better-sqlite3, with schemas for responses, which make them faster, as its documentation advises.
import Database from 'better-sqlite3'
import Fastify from 'fastify'
import { createHandlers, credential, openSqlite, port, unknownKey } from './pets.js'

const { list, get, create } = createHandlers(openSqlite(Database))
const app = Fastify({ logger: process.env['LOG'] === 'on' })

const [integer, text] = [{ type: 'integer' }, { type: 'string' }]
const pet = { type: 'object', properties: { id: integer, name: text, categoryId: integer, status: text } }
const schema = { response: { 200: pet, 201: pet } }

const send = (reply, { status, headers = {}, body }) => reply.code(status).headers(headers).send(body)

// Fastify's own parser rounds long integers.
app.removeContentTypeParser('application/json')
app.addContentTypeParser('*', { parseAs: 'string' }, (_request, text, done) => done(null, text))

app.addHook('onRequest', (request, reply, done) => {
  if (request.headers.authorization === credential) done()
  else send(reply, unknownKey)
})

app.get('/v1/pets', { schema: { response: { 200: { type: 'array', items: pet } } } }, (request, reply) =>
  send(reply, list(request.query)),
)
app.get('/v1/pets/:petId', { schema }, (request, reply) => send(reply, get(request.params.petId)))
app.post('/v1/pets', { schema }, (request, reply) => send(reply, create(request.body ?? '')))

await app.listen({ host: '127.0.0.1', port })
