import { Database } from 'bun:sqlite'
import { openStores } from '../../src/store/open.ts'

/** The animals that every contender starts with, as a file of our own store. */
export interface Catalogue {
  readonly file: string
  readonly animals: number
}

export interface Animal {
  readonly id: number
  readonly name: string
  readonly categoryId: number
  readonly status: (typeof statuses)[number]
}

const statuses = ['available', 'pending', 'sold'] as const
const categories = 50

/** Which animal has this id in a catalogue of any size. */
export function animalAt(id: number): Animal {
  const status = statuses[id % statuses.length] ?? 'sold'
  return { id, name: `Animal ${id}`, categoryId: id % categories, status }
}

/** The animals of a page: those after an id, perhaps only those of one status. */
export function animalsAfter(after: number, count: number, status?: Animal['status']): readonly Animal[] {
  const found: Animal[] = []
  for (let id = after + 1; found.length < count; id++) {
    const animal = animalAt(id)
    if (status === undefined || animal.status === status) found.push(animal)
  }
  return found
}

const insert = `
  WITH RECURSIVE numbers (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM numbers WHERE id < $animals)
  INSERT INTO pets (id, name, category_id, status)
  SELECT id, 'Animal ' || id, id % ${categories},
    CASE id % 3 WHEN 0 THEN 'available' WHEN 1 THEN 'pending' ELSE 'sold' END
  FROM numbers`

/** Our own store makes the tables; the animals come in one statement, ten million of them in half a minute. */
export async function buildCatalogue(file: string, animals: number): Promise<Catalogue> {
  const stores = await openStores(`sqlite:${file}`, { create: true })
  await stores.close()
  using database = new Database(file)
  // Should this be interrupted the file is thrown away: until it is complete it needs no log and no disk.
  for (const setting of ['journal_mode = OFF', 'synchronous = OFF', 'cache_size = -200000']) {
    database.run(`PRAGMA ${setting}`)
  }
  database.query<never, { $animals: number }>(insert).run({ $animals: animals })
  database.run('PRAGMA journal_mode = WAL')
  return { file, animals }
}
