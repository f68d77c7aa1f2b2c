import { join } from 'node:path'
import type { Bench } from './bench.ts'

export const petstoreProgram = join(import.meta.dir, '../bin/petstore')

/** The animals that every contender starts with. */
export interface Catalogue {
  /** A SQLite file of the petstore. */
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

export function animalsAfter(after: number, count: number): readonly Animal[] {
  return Array.from({ length: count }, (_, i) => animalAt(after + 1 + i))
}

export async function buildCatalogue(bench: Bench, animals: number): Promise<Catalogue> {
  bench.log(`creating a catalogue of ${animals.toLocaleString('en')} animals`)
  const file = join(bench.folder(), 'pets.db')
  await importAnimals(bench, `sqlite:${file}`, animals)
  return { file, animals }
}

/** Creates a store with `petstore import`. */
export async function importAnimals(bench: Bench, databaseUrl: string, animals: number): Promise<void> {
  const lines = animalsAfter(0, animals).map(each => JSON.stringify(each))
  const command = [petstoreProgram, 'import', '--keep-ids', '--database-url', databaseUrl, '-']
  const stdin = new Blob([lines.join('\n')])
  const program = bench.spawn(command, { stdin, stdout: 'ignore', stderr: 'pipe' })
  const messages = await new Response(program.stderr as ReadableStream).text()
  if ((await program.exited) !== 0) throw new Error(`petstore import failed: ${messages}`)
}
