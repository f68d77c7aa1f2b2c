// A Fastify that asks for the key; the routes come with the store.
import Fastify from 'fastify'

const unauthorized = { code: 'invalid_api_key', message: 'The API key is missing or unknown', status: 401 }
export const absent = { code: 'pet_not_found', message: 'No animal has this id', status: 404 }

export function createApp() {
  const credential = `Bearer ${process.env['PETSTORE_API_KEY']}`
  const app = Fastify()
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.authorization === credential) done()
    else reply.code(401).header('WWW-Authenticate', 'Bearer').send(unauthorized)
  })
  return app
}
