import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { fingerprintOf, type NewPet } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import { isConnectionLost } from '../../src/store/postgres/errors.ts'
import { bigints, texts } from '../../src/store/postgres/pets.ts'
import { migrations } from '../../src/store/postgres/schema.ts'
import { describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { until } from '../support/process.ts'

/** The version before animals and keys were stored by one function. */
const previousVersion = 2
const writingMs = 2_000

/** The statements with which the previous version stored animals without idempotency keys. */
async function insertAsBefore(sql: SQL, pets: readonly NewPet[]): Promise<bigint[]> {
  const statement = `
    WITH counter AS (
      UPDATE pet_ids SET last_id = last_id + cardinality($1::text[])
      RETURNING last_id - cardinality($1::text[]) AS before
    ), given AS (
      SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY
        AS pet (name, category_id, status, place)
    )
    INSERT INTO pets (id, name, category_id, status)
    SELECT before + place, name, category_id, status FROM counter, given
    RETURNING id`
  const rows = await sql.unsafe<{ id: bigint }[]>(statement, [
    texts(sql, pets, ({ name }) => name),
    bigints(sql, pets, ({ categoryId }) => categoryId),
    texts(sql, pets, ({ status }) => status ?? null),
  ])
  return rows.map(({ id }) => id)
}

/** The transaction with which it stored one with an idempotency key. It knew the id before it stored the animal. */
function createOnceAsBefore(sql: SQL, pet: NewPet, key: string, onLocked = async () => {}): Promise<bigint> {
  return sql.begin(async transaction => {
    const [counter] = await transaction.unsafe<[{ last_id: bigint }]>('SELECT last_id FROM pet_ids FOR UPDATE')
    await onLocked()
    const [known] = await transaction.unsafe<{ pet_id: bigint }[]>(
      `SELECT scope, key, fingerprint, pet_id, created_at_ms FROM creation_keys
       WHERE (scope, key) IN (SELECT * FROM unnest($1::text[], $2::text[]))`,
      [texts(transaction, ['a'], scope => scope), texts(transaction, [key], name => name)],
    )
    if (known) return known.pet_id
    const id = counter.last_id + 1n
    expect(await insertAsBefore(transaction, [pet])).toEqual([id])
    await transaction.unsafe(
      `INSERT INTO creation_keys (scope, key, fingerprint, pet_id, created_at_ms) VALUES ($1, $2, $3, $4, $5)`,
      ['a', key, fingerprintOf(pet), id, BigInt(Date.now())],
    )
    return id
  })
}

async function createAsBefore(sql: SQL): Promise<void> {
  for (const step of migrations.slice(0, previousVersion)) await sql.unsafe(step)
  await sql.unsafe(`CREATE TABLE petstore_schema AS SELECT ${previousVersion} AS version`)
}

describeWithPostgres('PostgreSQL: a rolling upgrade', () => {
  test('a creation that the previous version has begun is completed first', async () => {
    await using database = await sharedDatabase()
    await using sql = new SQL(database.url, { max: 1, bigint: true })
    await using watching = new SQL(database.url, { max: 1 })
    await createAsBefore(sql)
    const isWaiting = async () => {
      const waiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'pet_ids'::regclass`
      return (await watching.unsafe(waiting)).length > 0 || undefined
    }
    const pet: NewPet = { name: 'Rex', categoryId: 7n }
    let upgrading: ReturnType<typeof openStores> | undefined
    const id = await createOnceAsBefore(sql, pet, 'key', async () => {
      upgrading = openStores(database.url, { create: false })
      await until('the upgrade to wait', isWaiting)
    })
    const stores = await upgrading
    const again = await stores?.pets.createOnce(pet, { scope: 'a', key: 'key', at: new Date() })
    expect(again).toEqual({ outcome: 'replayed', pet: { ...pet, id } })
    await stores?.close()
  })

  test('while another program has locked a table, the upgrade gives up soon, and creations continue', async () => {
    await using database = await sharedDatabase()
    await using sql = new SQL(database.url, { max: 1, bigint: true })
    await using other = new SQL(database.url, { max: 1 })
    await createAsBefore(sql)
    await other.begin(async transaction => {
      await transaction`SELECT * FROM creation_keys`
      const upgrading = Promise.resolve(openStores(database.url, { create: false }))
      await expect(upgrading).rejects.toThrow(/another program has locked it; stop that program, or try again \(55P03/)
      expect(await insertAsBefore(sql, [{ name: 'Rex', categoryId: 7n }])).toEqual([1n])
    })
    await (await openStores(database.url, { create: false })).close()
  })

  test('the previous version continues beside the new one: every id once, in order, and one animal for each key', async () => {
    await using stack = new AsyncDisposableStack()
    const { url } = stack.use(await sharedDatabase())
    const connect = (name = 'test') =>
      stack.use(new SQL(url, { max: 1, bigint: true, connection: { application_name: name } }))
    const setup = connect()
    await createAsBefore(setup)

    const pet: NewPet = { name: 'Rex', categoryId: 7n }
    const acknowledged: bigint[] = []
    const byKey = new Map<string, Set<bigint>>()
    const addedOnce = (key: string, id: bigint) => byKey.set(key, (byKey.get(key) ?? new Set()).add(id))
    let over = false
    const repeat = async (step: (number: number) => Promise<unknown>) => {
      for (let number = 0; !over; number++) await step(number)
    }
    const [plain, keyed] = [connect('petstore'), connect('petstore')]
    let interruptions = 0
    // The previous version answers 503 when its session ends, and the client tries again.
    const unlessInterrupted = <T>(promise: Promise<T>) =>
      promise.catch(async (error: unknown) => {
        if (!isConnectionLost(error)) throw error
        interruptions++
        await Bun.sleep(10)
      })
    const working = [
      repeat(async () => {
        const ids = await unlessInterrupted(insertAsBefore(plain, [pet, pet]))
        if (ids) acknowledged.push(...ids)
      }),
      repeat(async number => {
        const once = () => unlessInterrupted(createOnceAsBefore(keyed, pet, `${number}`))
        const id = (await once()) ?? (await once())
        if (id !== undefined) addedOnce(`${number}`, id)
      }),
    ]
    // Both versions are running from here on.
    const stores = await openStores(url, { create: false })
    stack.defer(() => stores.close())
    const followed: bigint[] = []
    working.push(
      repeat(async () => acknowledged.push((await stores.pets.create(pet)).id)),
      repeat(async number => {
        const once = await stores.pets.createOnce(pet, { scope: 'a', key: `${number}`, at: new Date() })
        if (once.outcome === 'conflict') throw new Error('conflict')
        addedOnce(`${number}`, once.pet.id)
      }),
      repeat(async () => {
        const { pets } = await stores.pets.list({ limit: 100, after: followed.at(-1) ?? 0n })
        followed.push(...pets.map(({ id }) => id))
      }),
    )
    await Bun.sleep(writingMs)
    over = true
    await Promise.all(working)

    const once = [...byKey.values()]
    expect(once.filter(same => same.size !== 1)).toEqual([])
    const rows = await setup.unsafe<{ id: bigint }[]>('SELECT id FROM pets ORDER BY id')
    const all = rows.map(({ id }) => id)
    expect(all).toEqual(all.map((_, index) => BigInt(index + 1)))
    const answered = [...acknowledged, ...once.flatMap(same => [...same])]
    expect(new Set(answered).size).toBe(answered.length)
    expect(new Set(all).isSupersetOf(new Set(answered))).toBe(true)
    // Only the sessions of the previous version ended, each once.
    expect(interruptions).toBeLessThanOrEqual(2)
    expect(followed).toEqual(all.slice(0, followed.length))
    expect(followed.length).toBeGreaterThan(100)
  })
})
