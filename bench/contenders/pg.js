// The animals on PostgreSQL through pg: a pool, and statements that have names, so that each connection plans them once.
import pg from 'pg'
import { pageOf, petOf } from './sql.js'

const int8Oid = 20
pg.types.setTypeParser(int8Oid, Number)

const schema = `
  CREATE TABLE IF NOT EXISTS pets (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    category_id bigint NOT NULL,
    status text
  );
  CREATE INDEX IF NOT EXISTS pets_by_status ON pets (status, id);`

const columns = 'id, name, category_id AS "categoryId", status'
const texts = {
  list: `SELECT ${columns} FROM pets WHERE id > $1 ORDER BY id LIMIT $2`,
  listByStatus: `SELECT ${columns} FROM pets WHERE status = $1 AND id > $2 ORDER BY id LIMIT $3`,
  get: `SELECT ${columns} FROM pets WHERE id = $1`,
  create: 'INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id',
}

export async function openPool(connectionString) {
  const pool = new pg.Pool({ connectionString })
  await pool.query(schema)
  return pool
}

export function petsIn(pool) {
  const query = async (name, values) => (await pool.query({ name, text: texts[name], values })).rows
  return {
    async list({ limit, status, after }) {
      const rows =
        status === undefined
          ? await query('list', [after, limit + 1])
          : await query('listByStatus', [status, after, limit + 1])
      return pageOf(rows, limit)
    },
    async get(id) {
      const [row] = await query('get', [id])
      return row && petOf(row)
    },
    async create({ name, categoryId, status }) {
      const [{ id }] = await query('create', [name, categoryId, status ?? null])
      return { id, name, categoryId, status }
    },
  }
}
