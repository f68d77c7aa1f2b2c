// Fastify 5 and pg: the routes and schemas of fastify.js, with a pool of 10 connections.
import pg from 'pg'
import { createApp, createSchema, getSchema, listSchema, notFound } from './fastify-app.js'
import { nextLink, pageOf, petOf } from './pets.js'

const int8Oid = 20
pg.types.setTypeParser(int8Oid, Number)

const [port] = process.argv.slice(2)
const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
const app = createApp()

// Named statements: each connection plans them once.
const columns = 'id, name, category_id AS "categoryId", status'
const texts = {
  list: `SELECT ${columns} FROM pets WHERE id > $1 ORDER BY id LIMIT $2`,
  listByStatus: `SELECT ${columns} FROM pets WHERE status = $1 AND id > $2 ORDER BY id LIMIT $3`,
  get: `SELECT ${columns} FROM pets WHERE id = $1`,
  create: 'INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id',
}
const query = async (name, values) => (await pool.query({ name, text: texts[name], values })).rows

app.get('/v1/pets', { schema: listSchema }, async (request, reply) => {
  const { limit, status, cursor: after } = request.query
  const rows =
    status === undefined
      ? await query('list', [after, limit + 1])
      : await query('listByStatus', [status, after, limit + 1])
  const { pets, more } = pageOf(rows, limit)
  if (more) reply.header('Link', nextLink(limit, status, pets.at(-1).id))
  return pets
})

app.get('/v1/pets/:petId', { schema: getSchema }, async (request, reply) => {
  const [row] = await query('get', [request.params.petId])
  return row ? petOf(row) : reply.code(404).send(notFound)
})

app.post('/v1/pets', { schema: createSchema }, async (request, reply) => {
  const { name, categoryId, status } = request.body
  const [{ id }] = await query('create', [name, categoryId, status ?? null])
  reply.code(201).header('Location', `/v1/pets/${id}`)
  return { id, name, categoryId, status }
})

await app.listen({ host: '127.0.0.1', port: Number(port) })
