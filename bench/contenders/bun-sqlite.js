// The animals on bun:sqlite: prepared statements, a write-ahead log, and every commit on the disk.
import { Database } from 'bun:sqlite'
import { pageOf, petOf, schema, statements } from './sql.js'

export function openPets(file) {
  const database = new Database(file, { create: true })
  database.run('PRAGMA journal_mode = WAL')
  database.run('PRAGMA synchronous = FULL')
  database.run(schema)
  const list = database.query(statements.list)
  const listByStatus = database.query(statements.listByStatus)
  const get = database.query(statements.get)
  const create = database.query(statements.create)
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
