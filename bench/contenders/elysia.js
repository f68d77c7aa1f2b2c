// Elysia with bun:sqlite. It checks the key in beforeHandle, as its documentation advises.
import { Database } from 'bun:sqlite'
import { Elysia } from 'elysia'
import { createHandlers, credential, exactJson, openSqlite, port, unknownKey } from './pets.js'

const { list, get, create } = createHandlers(openSqlite(Database), exactJson)

function answer({ set, status }, reply) {
  for (const name in reply.headers) set.headers[name] = reply.headers[name]
  return status(reply.status, reply.body)
}

new Elysia()
  .onBeforeHandle(({ request, status }) => {
    if (request.headers.get('authorization') !== credential) return status(401, unknownKey.body)
  })
  .get('/v1/pets', ({ query, set, status }) => answer({ set, status }, list(query)))
  .get('/v1/pets/:petId', ({ params, set, status }) => answer({ set, status }, get(params.petId)))
  // As text: Elysia's own parser rounds long integers.
  .post('/v1/pets', ({ body, set, status }) => answer({ set, status }, create(body)), { parse: 'text' })
  .listen({ hostname: '127.0.0.1', port })
