// The animals on better-sqlite3: prepared statements, a write-ahead log, and every commit on the disk.
import Database from 'better-sqlite3'
import { petsOn, schema } from './sql.js'

export function openPets(file) {
  const database = new Database(file)
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(schema)
  return petsOn(statement => database.prepare(statement))
}
