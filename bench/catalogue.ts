import { join } from 'node:path'
import type { FileSink } from 'bun'
import type { Session } from './session.ts'

export const petstoreProgram = join(import.meta.dir, '../bin/petstore')

/** The animals that every contender starts with, as a SQLite file of the petstore. */
export interface Catalogue {
  readonly file: string
  readonly animals: number
}

const statuses = ['available', 'pending', 'sold'] as const

export interface Animal {
  readonly id: number
  readonly name: string
  readonly categoryId: number
  readonly status: (typeof statuses)[number]
}

/** The animal with this id, in a catalogue of any size. */
export function animalAt(id: number): Animal {
  return { id, name: `Animal ${id}`, categoryId: id % 50, status: statuses[id % 3] ?? 'sold' }
}

/** The page after an id: `count` animals, of one status if one is given. */
export function animalsAfter(after: number, count: number, status?: Animal['status']): readonly Animal[] {
  const page: Animal[] = []
  for (let id = after + 1; page.length < count; id++) {
    const animal = animalAt(id)
    if (status === undefined || animal.status === status) page.push(animal)
  }
  return page
}

export async function buildCatalogue(session: Session, animals: number): Promise<Catalogue> {
  const file = join(session.folder('catalogue'), 'pets.db')
  await importAnimals(session, `sqlite:${file}`, animals)
  return { file, animals }
}

const linesPerWrite = 10_000

/** Creates a store with `petstore import`. */
export async function importAnimals(session: Session, databaseUrl: string, animals: number): Promise<void> {
  const command = [petstoreProgram, 'import', '--keep-ids', '--database-url', databaseUrl, '-']
  const program = session.spawn(command, { stdin: 'pipe', stdout: 'ignore', stderr: 'pipe' })
  const stdin = program.stdin as FileSink
  const messages = new Response(program.stderr as ReadableStream).text()
  for (let after = 0; after < animals; after += linesPerWrite) {
    const lines = animalsAfter(after, Math.min(linesPerWrite, animals - after)).map(each => JSON.stringify(each))
    stdin.write(`${lines.join('\n')}\n`)
    await stdin.flush()
  }
  await stdin.end()
  if ((await program.exited) !== 0) throw new Error(`petstore import failed: ${await messages}`)
}
