import { expect, setDefaultTimeout, test } from 'bun:test'
import { StoreUnavailable } from '../../src/errors.ts'
import { openStores } from '../../src/store/open.ts'
import { batchPetsMax } from '../../src/store.ts'
import { ask } from '../support/postgres.ts'
import { testMsMax } from '../support/process.ts'
import { describeWithPostgres, sharedDatabase } from '../support/with-postgres.ts'
import { animalLines, workplace } from '../support/workplace.ts'
import { postgresUnderTest } from './postgres-under-test.ts'
import { describeTransferContract } from './transfer-contract.ts'

setDefaultTimeout(testMsMax)

const endTransactions = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'petstore' AND state = 'idle in transaction'`

describeWithPostgres('PostgreSQL: moving a catalogue', () => {
  describeTransferContract('PostgreSQL', postgresUnderTest)

  test('it goes from SQLite to PostgreSQL and back, and is the same to the byte', async () => {
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

  test('an export whose connection is lost fails, and does not go on at another moment', async () => {
    await using database = await sharedDatabase()
    const stores = await openStores(database.url, { create: true })
    async function* many() {
      yield Array.from({ length: batchPetsMax + 10 }, (_, i) => ({ name: `Animal ${i}`, categoryId: 1n }))
    }
    await stores.transfer.load(many(), 'new')
    const failure = await (async () => {
      for await (const _ of stores.transfer.read()) {
        await ask(database.url, endTransactions)
        // Until the driver has noticed: only then would it take another connection, without a word.
        await Bun.sleep(200)
      }
    })().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(StoreUnavailable)
    await stores.close()
  })

  test('whoever adds an animal waits for the animals to be taken in, not for the lines to come', async () => {
    await using database = await sharedDatabase()
    const stores = await openStores(database.url, { create: true })
    async function* slow() {
      for (let i = 0; i < 3; i++) {
        yield [{ name: 'Rex', categoryId: 1n }]
        await stores.pets.create({ name: 'meanwhile', categoryId: 1n })
      }
    }
    expect(await stores.transfer.load(slow(), 'new')).toBe(3n)
    const { pets } = await stores.pets.list({ limit: 100 })
    expect(pets.map(({ name }) => name)).toEqual([...Array(3).fill('meanwhile'), ...Array(3).fill('Rex')])
    await stores.close()
  })
})
