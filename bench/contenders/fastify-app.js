// Fastify with the key check and the schemas; fastify.js and fastify-pg.js add the routes.
import Fastify from 'fastify'
import { statuses } from './pets.js'

const unauthorized = { code: 'invalid_api_key', message: 'The API key is missing or unknown', status: 401 }
export const notFound = { code: 'pet_not_found', message: 'No animal has this id', status: 404 }

export function createApp() {
  const credential = `Bearer ${process.env['PETSTORE_API_KEY']}`
  const app = Fastify()
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.authorization === credential) done()
    else reply.code(401).header('WWW-Authenticate', 'Bearer').send(unauthorized)
  })
  return app
}

const status = { type: 'string', enum: statuses }
const newPetProperties = {
  name: { type: 'string', minLength: 1, maxLength: 1_000, pattern: '\\S' },
  categoryId: { type: 'integer', minimum: -(2 ** 63), maximum: 2 ** 63 },
  status,
}
const pet = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    name: { type: 'string' },
    categoryId: { type: 'integer' },
    status: { type: 'string' },
  },
}

export const listSchema = {
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

export const getSchema = {
  params: { type: 'object', properties: { petId: { type: 'integer' } } },
  response: { 200: pet },
}

export const createSchema = {
  body: { type: 'object', required: ['name', 'categoryId'], properties: newPetProperties },
  response: { 201: pet },
}
