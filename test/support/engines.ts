import { join } from 'node:path'
import { hasPostgres, sharedDatabase, type TestDatabase } from './postgres.ts'
import { memoryFolder, temporaryFolder } from './process.ts'

export type Engine = 'SQLite' | 'PostgreSQL'

/** Those that can run here, for `describe.each(engines)`. */
export const engines: readonly Engine[] = hasPostgres() ? ['SQLite', 'PostgreSQL'] : ['SQLite']

/** An empty database of its own, gone with the test. */
export async function newTestDatabase(engine: Engine): Promise<TestDatabase> {
  if (engine === 'PostgreSQL') return sharedDatabase()
  const folder = temporaryFolder(memoryFolder)
  const url = `sqlite:${join(folder.path, 'pets.db')}`
  return { url, [Symbol.asyncDispose]: async () => folder[Symbol.dispose]() }
}
