// The same tables and statements for every contender on SQLite; they also fit a file that the petstore made.
export const schema = `
  CREATE TABLE IF NOT EXISTS pets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    category_id INTEGER NOT NULL,
    status TEXT
  );
  CREATE INDEX IF NOT EXISTS pets_by_status ON pets (status);`

const columns = 'id, name, category_id AS "categoryId", status'

const statements = {
  // Pages go by id, so that a deep one costs what the first one costs.
  list: `SELECT ${columns} FROM pets WHERE id > ? ORDER BY id LIMIT ?`,
  listByStatus: `SELECT ${columns} FROM pets WHERE status = ? AND id > ? ORDER BY id LIMIT ?`,
  get: `SELECT ${columns} FROM pets WHERE id = ?`,
  create: 'INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)',
}

/** An animal that was added without a status has none in any answer. */
export function petOf(row) {
  if (row.status !== null) return row
  const { id, name, categoryId } = row
  return { id, name, categoryId }
}

/** One row past the limit tells that a next page exists. */
export function pageOf(rows, limit) {
  const more = rows.length > limit
  if (more) rows.pop()
  return { pets: rows.map(petOf), more }
}

/** The animals behind either driver: both give statements that know `all`, `get` and `run`. */
export function petsOn(prepare) {
  const list = prepare(statements.list)
  const listByStatus = prepare(statements.listByStatus)
  const get = prepare(statements.get)
  const create = prepare(statements.create)
  return {
    list({ limit, status, after }) {
      const rows =
        status === undefined ? list.all(after, limit + 1) : listByStatus.all(status, after, limit + 1)
      return pageOf(rows, limit)
    },
    get(id) {
      const row = get.get(id)
      return row && petOf(row)
    },
    create({ name, categoryId, status }) {
      const id = Number(create.run(name, categoryId, status ?? null).lastInsertRowid)
      return { id, name, categoryId, status }
    },
  }
}
