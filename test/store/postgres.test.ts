import { expect, setDefaultTimeout, test } from 'bun:test'
import { StoreUnavailable } from '../../src/errors.ts'
import { openStores } from '../../src/store/open.ts'
import { batchPetsMax } from '../../src/store.ts'
import { ask, describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { testMsMax } from '../support/process.ts'
import { animalLines, workplace } from '../support/workplace.ts'
import { batches, describeStoreContract } from './contract.ts'

setDefaultTimeout(testMsMax)

describeWithPostgres('PostgreSQL', () => {
  describeStoreContract('PostgreSQL', 'postgres')

  test('a catalogue goes from SQLite to PostgreSQL and back unchanged to the byte', async () => {
    await using database = await sharedDatabase()
    const lines = animalLines(12_000)
    using place = workplace(lines)
    const steps = [
      'petstore import --keep-ids animals.ndjson',
      `petstore export | petstore import - --keep-ids --database-url ${database.url}`,
      `petstore export --database-url ${database.url} there.ndjson`,
      'petstore import --keep-ids there.ndjson --database-url sqlite:back.db',
    ]
    for (const step of steps) expect(await place.shell(step)).toMatchObject({ exitCode: 0, stdout: '' })
    expect((await place.petstore('export', '--database-url', 'sqlite:back.db')).stdout).toBe(lines)
  })

  test('an export that loses its connection fails instead of continuing with later data', async () => {
    await using database = await sharedDatabase()
    const stores = await openStores(database.url, { create: true })
    const animals = Array.from({ length: batchPetsMax + 10 }, () => ({ name: 'Rex', categoryId: 1n }))
    await stores.transfer.load(batches(animals), 'new')
    const failure = await (async () => {
      for await (const _ of stores.transfer.read()) {
        await ask(
          database.url,
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND application_name = 'petstore' AND state = 'idle in transaction'`,
        )
        // Until the driver has noticed: only then would it use another connection.
        await Bun.sleep(200)
      }
    })().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(StoreUnavailable)
    await stores.close()
  })
})
