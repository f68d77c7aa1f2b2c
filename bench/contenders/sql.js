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

export const statements = {
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
