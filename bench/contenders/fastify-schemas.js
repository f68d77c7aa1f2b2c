// Schemas for Fastify: they check what comes in, and write what goes out faster than JSON.stringify.
import { statuses } from './rules.js'

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
