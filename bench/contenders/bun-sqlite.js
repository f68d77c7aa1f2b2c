// The animals on bun:sqlite: prepared statements, a write-ahead log, and every commit on the disk.
import { Database } from 'bun:sqlite'
import { petsOn, schema } from './sql.js'

export function openPets(file) {
  const database = new Database(file, { create: true })
  database.run('PRAGMA journal_mode = WAL')
  database.run('PRAGMA synchronous = FULL')
  database.run(schema)
  return petsOn(statement => database.query(statement))
}
