import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SetupError } from '../errors.ts'
import type { PetStatus } from '../pet.ts'
import type { Stores } from '../store.ts'
import { command, readValues } from './arguments.ts'
import { codeOf } from './output.ts'
import { serve } from './serve.ts'
import { settings } from './settings.ts'

export const demoCommand = command({
  name: 'demo',
  summary: 'Serve 30 sample animals from a temporary store until Ctrl-C',
  options: { port: settings.port, host: settings.host },
  details: `The store is in a new temporary folder, which is deleted at the end. Only warnings and errors are logged.
Of the variables of serve, only PORT and HOST apply.`,
  examples: ['petstore demo', 'petstore demo --port 9000'],
  async run({ port, host }, io) {
    const folder = newFolder()
    try {
      const databaseUrl = `sqlite:${join(folder, 'petstore.db')}`
      const { values } = readValues({ options: settings }, {}, {})
      return await serve({ ...values, port, host, databaseUrl, logLevel: 'warn' }, io, addAnimals)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
})

function newFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'petstore-demo-'))
  } catch (cause) {
    const message = `Cannot create a folder in ${tmpdir()} (${codeOf(cause)}): set TMPDIR to a folder that you can write to`
    throw new SetupError(message, { cause })
  }
}

/** Adds them in one commit, so ids follow the order of the list. */
async function addAnimals({ pets }: Stores): Promise<void> {
  await Promise.all(
    sampleAnimals.map(([name, categoryId, status]) => pets.create({ name, categoryId, ...(status && { status }) })),
  )
}

/** Categories: 1 dogs, 2 cats, 3 rabbits and rodents, 4 birds, 5 fish, 6 reptiles. */
const sampleAnimals: readonly (readonly [name: string, categoryId: bigint, status?: PetStatus])[] = [
  ['Biscuit', 1n, 'available'],
  ['Luna', 2n, 'available'],
  ['Captain Nibbles', 3n, 'pending'],
  ['Mango', 4n, 'available'],
  ['Otto', 1n, 'sold'],
  ['Pepper', 2n, 'available'],
  ['Bubbles', 5n, 'available'],
  ['Shelly', 6n, 'available'],
  ['Hazel', 3n, 'available'],
  ['Bruno', 1n, 'pending'],
  ['Ziggy', 6n],
  ['Clementine', 2n, 'sold'],
  ['Kiwi', 4n, 'available'],
  ['Waffles', 1n, 'available'],
  ['Neptune', 5n, 'sold'],
  ['Mochi', 2n, 'pending'],
  ['Thumper', 3n, 'available'],
  ['Freya', 1n, 'available'],
  ['Sir Hops-a-Lot', 3n, 'sold'],
  ['Pickles', 2n, 'available'],
  ['Echo', 4n, 'pending'],
  ['Ginger', 1n, 'sold'],
  ['Spike', 6n, 'available'],
  ['Coral', 5n, 'available'],
  ['Willow', 2n, 'available'],
  ['Peanut', 3n, 'available'],
  ['Zoë', 1n, 'available'],
  ['Sunny', 4n],
  ['Smokey', 2n, 'sold'],
  ['Jasper', 1n, 'available'],
]
