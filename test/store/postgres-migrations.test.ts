import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { openStores } from '../../src/store/open.ts'
import { functions } from '../../src/store/postgres/functions.ts'
import { openPostgres } from '../../src/store/postgres/open.ts'
import { migrations } from '../../src/store/postgres/schema.ts'
import { type PostgresAddress, parsePostgresUrl } from '../../src/store/postgres/url.ts'
import type { Stores } from '../../src/store-contract.ts'
import { describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { until } from '../support/process.ts'
import { closing, rex } from './stores.ts'

/** The step of a made-up next version, which adds a column and replaces the functions. */
const next = `ALTER TABLE pets ADD COLUMN colour text; ${functions}`
const openNext = (url: string, step = next) =>
  openPostgres(parsePostgresUrl(url) as PostgresAddress, { create: false }, [...migrations, step])

describeWithPostgres('PostgreSQL: a rolling upgrade', () => {
  test('both versions continue without a failure: every id once, in order, and one animal for each key', async () => {
    await using stack = new AsyncDisposableStack()
    const { url } = stack.use(await sharedDatabase())
    const created = new Set<bigint>()
    const ofKeys: bigint[] = []
    const followed: bigint[] = []
    let over = false
    const work = async ({ pets }: Stores, rounds: number) => {
      for (let round = 0; round < rounds && !over; round++) {
        created.add((await pets.create(rex)).id)
        const once = await pets.createOnce(rex, { scope: 'a', key: `${round}`, at: new Date() })
        if (once.outcome === 'conflict') throw new Error('conflict')
        ofKeys[round] ??= once.pet.id
        expect(once.pet.id).toBe(ofKeys[round] as bigint)
        const name = pets === first.pets ? 'first' : 'second'
        expect(await pets.update(once.pet.id, { name })).toMatchObject({ outcome: 'changed', pet: { name } })
        const page = await pets.list({ limit: 100, after: followed.at(-1) ?? 0n })
        if (pets === first.pets) followed.push(...page.pets.map(({ id }) => id))
      }
    }
    const first = stack.use(closing(await openStores(url, { create: true })))
    const working = work(first, Number.POSITIVE_INFINITY)
    await until('the first version to work', () => followed.length > 20 || undefined)
    const upgraded = stack.use(closing(await openNext(url)))
    await work(upgraded, 100)
    over = true
    await working

    await using sql = new SQL(url, { max: 1, bigint: true })
    const rows = await sql.unsafe<{ id: bigint }[]>('SELECT id FROM pets ORDER BY id')
    const all = rows.map(({ id }) => id)
    expect(all).toEqual(all.map((_, index) => BigInt(index + 1)))
    expect([...created, ...ofKeys].sort((a, b) => Number(a - b))).toEqual(all)
    expect(followed).toEqual(all.slice(0, followed.length))
    const again = Promise.resolve(openStores(url, { create: false }))
    await expect(again).rejects.toThrow(/schema version 2, .* up to 1$/)
  })

  test('while another program has locked a table, the upgrade gives up soon, and creations continue', async () => {
    await using database = await sharedDatabase()
    await using other = new SQL(database.url, { max: 1 })
    await using first = closing(await openStores(database.url, { create: true }))
    await other.begin(async transaction => {
      await transaction`SELECT * FROM pets`
      const refused = /another process has locked it \(55P03/
      await expect(openNext(database.url)).rejects.toThrow(refused)
      expect((await first.pets.create(rex)).id).toBe(1n)
    })
    await (await openNext(database.url)).close()
  })

  test('a step that fails leaves nothing behind, and can be repeated', async () => {
    await using database = await sharedDatabase()
    await (await openStores(database.url, { create: true })).close()
    const step = 'CREATE TABLE toys (id integer)'
    await expect(openNext(database.url, `${step}; SELECT 1 / 0`)).rejects.toThrow('division by zero')
    await (await openNext(database.url, step)).close()
  })
})
