import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readCode, SetupError } from '../errors.ts'
import { readNewPet } from '../pet.ts'
import type { Stores } from '../store-contract.ts'
import { command, readValues } from './arguments.ts'
import sampleAnimals from './demo-animals.json' with { type: 'json' }
import { serve } from './serve.ts'
import { settings } from './settings.ts'

const portDefault = `${settings.port.default}, or a free port if it is in use`

export const demoCommand = command({
  name: 'demo',
  summary: 'Serve 30 sample animals from a temporary store until Ctrl-C',
  options: { port: { ...settings.port, default: portDefault, optional: true }, host: settings.host },
  details: `The store is in a new temporary folder, which is deleted at the end. Only warnings and errors are
logged. Of the variables of serve, only PORT and HOST apply.`,
  examples: ['petstore demo', 'petstore demo --port 9000'],
  async run({ port: given, host }, io) {
    const folder = newFolder()
    try {
      const databaseUrl = `sqlite:${join(folder, 'petstore.db')}`
      const { values } = readValues({ options: settings }, {}, {})
      const own = { ...values, port: given ?? values.port, host, databaseUrl, logLevel: 'warn' } as const
      return await serve(own, io, { prepare: addAnimals, takesAnyPort: given === undefined })
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
})

function newFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'petstore-demo-'))
  } catch (cause) {
    const message = `Cannot create a folder in ${tmpdir()} (${readCode(cause)}): set TMPDIR to a folder that you can write to`
    throw new SetupError(message, { cause })
  }
}

/**
 * Adds them in one commit, so ids follow the order of the list. Categories: 1 dogs, 2 cats, 3 rabbits and rodents,
 * 4 birds, 5 fish, 6 reptiles.
 */
async function addAnimals({ pets }: Stores): Promise<void> {
  const read = sampleAnimals.map(animal => readNewPet(animal))
  await Promise.all(read.map(result => result.ok && pets.create(result.pet)))
}
