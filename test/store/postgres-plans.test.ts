import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { SQL } from 'bun'
import { openStores } from '../../src/store/open.ts'
import { statements } from '../../src/store/postgres/pets.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { testMsMax } from '../support/process.ts'
import { describeWithPostgres, sharedDatabase } from '../support/with-postgres.ts'

setDefaultTimeout(testMsMax)

const animals = 60_000
const deep = 50_000

type Mode = 'custom' | 'generic'
const modes: readonly Mode[] = ['custom', 'generic']
const petStatuses = ['available', 'pending', 'sold'] as const

describeWithPostgres('PostgreSQL: every page costs the same at any depth', () => {
  let database: TestDatabase
  let sql: SQL
  beforeAll(async () => {
    database = await sharedDatabase()
    await (await openStores(database.url, { create: true })).close()
    sql = new SQL(database.url, { max: 1 })
    // One status is common, one is rare, one is found only among the oldest, and a quarter has none.
    await sql.unsafe(
      `INSERT INTO pets (id, name, category_id, status)
       SELECT id, 'Animal ' || id, id % 100,
         CASE WHEN id % 4 = 0 THEN NULL WHEN id < 90 THEN 'sold' WHEN id % 1000 = 2 THEN 'pending' ELSE 'available' END
       FROM generate_series(1, ${animals}) AS id`,
    )
    await sql.unsafe('VACUUM ANALYZE pets')
  })
  afterAll(async () => {
    await sql.close()
    await database[Symbol.asyncDispose]()
  })

  /** As the server runs a statement: planned anew for its values, or, once it has come often enough, for any. */
  async function explained(
    statement: string,
    values: readonly unknown[],
    mode: Mode,
    options = 'COSTS OFF',
  ): Promise<string[]> {
    await sql.unsafe(`SET plan_cache_mode = force_${mode}_plan`)
    await sql.unsafe(`PREPARE asked AS ${statement}`)
    try {
      const explain = `EXPLAIN (${options}) EXECUTE asked (${values.map(value => `'${value}'`).join()})`
      const lines = await sql.unsafe<{ 'QUERY PLAN': string }[]>(explain)
      return lines.map(line => line['QUERY PLAN'].trim().replace(/^->\s+/, ''))
    } finally {
      await sql.unsafe('DEALLOCATE asked')
    }
  }

  test.each(modes)(
    'a page of all animals is a range of the primary key, without a sort (%s plan)',
    async mode => {
      for (const after of [0, deep]) {
        expect(await explained(statements.list, [after, 21], mode)).toEqual([
          'Limit',
          'Index Scan using pets_pkey on pets',
          expect.stringMatching(/^Index Cond: \(id > .+\)$/),
        ])
      }
    },
  )

  test.each(modes.flatMap(mode => petStatuses.map(status => [status, mode] as const)))(
    'a page of the status %s is a range of its index, without a sort (%s plan)',
    async (status, mode) => {
      for (const after of [0, deep]) {
        expect(await explained(statements.listByStatus, [status, after, 21], mode)).toEqual([
          'Limit',
          'Index Scan using pets_by_status on pets',
          expect.stringMatching(/^Index Cond: \(\(ROW\(status, id\) > ROW\(.+\)\) AND \(status <= .+\)\)$/),
        ])
      }
    },
  )

  test.each(modes)('one animal is one look-up (%s plan)', async mode => {
    expect(await explained(statements.get, [deep], mode)).toEqual([
      'Index Scan using pets_pkey on pets',
      expect.stringMatching(/^Index Cond: \(id = .+\)$/),
    ])
  })

  test.each(modes)('no page reads more than the animals on it, and the way to them (%s plan)', async mode => {
    const blocksRead = async (statement: string, values: readonly unknown[]) => {
      const lines = await explained(statement, values, mode, 'ANALYZE, BUFFERS, COSTS OFF, TIMING OFF')
      const [, hit, read = 0] = /Buffers: shared hit=(\d+)(?: read=(\d+))?/.exec(lines.join('\n')) ?? []
      return Number(hit) + Number(read)
    }
    for (const after of [0, deep, animals]) {
      expect(await blocksRead(statements.list, [after, 21])).toBeLessThan(30)
      for (const status of petStatuses) {
        expect(await blocksRead(statements.listByStatus, [status, after, 21])).toBeLessThan(30)
      }
    }
  })
})
