import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readNewPet } from '../pet.ts'
import type { Stores } from '../store-contract.ts'
import { readValues } from './arguments.ts'
import { command } from './command.ts'
import sampleAnimals from './demo-animals.json' with { type: 'json' }
import { serve } from './serve.ts'
import { settings } from './settings.ts'

const portDefault = `${settings.port.default}, or a free port if it is in use`

export const demoCommand = command({
  name: 'demo',
  summary: 'Serve 30 sample animals from a temporary store until Ctrl-C',
  options: { port: { ...settings.port, otherwise: portDefault }, host: settings.host },
  details: `The store is in a new temporary folder, which is deleted at the end. Only warnings and errors are
logged. Of the variables of serve, only PORT and HOST apply.`,
  examples: ['petstore demo', 'petstore demo --port 9000'],
  async run({ port: given, host }, io) {
    const folder = mkdtempSync(join(tmpdir(), 'petstore-demo-'))
    try {
      const databaseUrl = `sqlite:${join(folder, 'petstore.db')}`
      const { values } = readValues({ options: settings }, {}, { env: {}, program: io.program })
      const own = { ...values, port: given ?? values.port, host, databaseUrl, logLevel: 'warn' } as const
      return await serve(own, io, { prepare: addAnimals, takesAnyPort: given === undefined })
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
})

/**
 * Adds them in one commit, so ids follow the order of the list. Categories: 1 dogs, 2 cats, 3 rabbits and rodents,
 * 4 birds, 5 fish, 6 reptiles.
 */
async function addAnimals({ pets }: Stores): Promise<void> {
  const read = sampleAnimals.map(animal => readNewPet(animal))
  await Promise.all(read.map(result => result.ok && pets.create(result.pet)))
}
