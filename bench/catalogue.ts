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
  await runPetstore(bench, ['import', '--keep-ids', '--database-url', databaseUrl, '-'], new Blob([lines.join('\n')]))
}

/** Throws with its messages if it fails. */
export async function runPetstore(
  bench: Bench,
  args: readonly string[],
  stdin: Blob | ReadableStream | null = null,
): Promise<void> {
  const program = bench.spawn([petstoreProgram, ...args], { stdin, stdout: 'ignore', stderr: 'pipe' })
  const messages = await new Response(program.stderr as ReadableStream).text()
  if ((await program.exited) !== 0) throw new Error(`petstore ${args[0]} failed: ${messages}`)
}
