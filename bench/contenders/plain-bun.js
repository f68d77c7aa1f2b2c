// Bun.serve with bun:sqlite or Bun.sql, in the shortest form that does the work.

import { Database } from 'bun:sqlite'
import { SQL } from 'bun'
import { createHandlers, credential, databaseUrl, exactJson, openSqlite, port, unknownKey, whenReady } from './pets.js'

const store = databaseUrl.startsWith('sqlite:') ? openSqlite(Database) : await openPostgres()
const { list, get, create } = createHandlers(store, exactJson)

const send = ({ status, body, headers }) => Response.json(body, { status, headers })
const withKey = handle => request => {
  return request.headers.get('authorization') === credential ? whenReady(handle(request), send) : send(unknownKey)
}
const readQuery = url => Object.fromEntries(new URLSearchParams(url.split('?')[1]))

Bun.serve({
  hostname: '127.0.0.1',
  port,
  development: false,
  routes: {
    '/v1/pets': {
      GET: withKey(({ url }) => list(readQuery(url))),
      POST: withKey(async request => create(await request.text())),
    },
    '/v1/pets/:petId': { GET: withKey(({ params }) => get(params.petId)) },
  },
})

/** The petstore's SELECTs, and creations that lock a counter, so that ids become visible in order. */
async function openPostgres() {
  const sql = new SQL(databaseUrl, { bigint: true })
  await sql`CREATE TABLE pet_ids AS SELECT max(id) AS last_id FROM pets`
  const columns = sql`id, name, category_id AS "categoryId", status`
  return {
    list: async (status, after, rows) =>
      status
        ? await sql`SELECT ${columns} FROM pets WHERE status = ${status} AND id > ${after} ORDER BY id LIMIT ${rows}`
        : await sql`SELECT ${columns} FROM pets WHERE id > ${after} ORDER BY id LIMIT ${rows}`,
    get: async id => (await sql`SELECT ${columns} FROM pets WHERE id = ${id}`)[0],
    create: async (name, categoryId, status) => {
      const [row] = await sql`
        WITH counter AS (UPDATE pet_ids SET last_id = last_id + 1 RETURNING last_id)
        INSERT INTO pets SELECT last_id, ${name}::text, ${categoryId}::bigint, ${status}::text FROM counter
        RETURNING ${columns}`
      return row
    },
  }
}
