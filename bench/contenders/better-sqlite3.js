// The animals on better-sqlite3: prepared statements, a write-ahead log, and every commit on the disk.
import Database from 'better-sqlite3'
import { pageOf, petOf, schema, statements } from './sql.js'

export function openPets(file) {
  const database = new Database(file)
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(schema)
  const list = database.prepare(statements.list)
  const listByStatus = database.prepare(statements.listByStatus)
  const get = database.prepare(statements.get)
  const create = database.prepare(statements.create)
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
