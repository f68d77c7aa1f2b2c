import { Database } from 'bun:sqlite'
import { describe, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { key, serveFrom } from '../support/load.ts'
import { ask, describeWithPostgres } from '../support/postgres.ts'
import { projectFolder, type Server } from '../support/process.ts'
import { newTestDatabase, type StoreKind } from '../support/service.ts'
import { test } from '../support/test.ts'

const document = readFileSync(join(projectFolder, 'docs/operating.md'), 'utf8')
const [, block = ''] = /^## Correcting an animal$.*?^```sql\n(.*?)^```$/ms.exec(document) ?? []

/** Two processes on one empty store, which this program changes by SQL. */
async function startTwo(kind: StoreKind) {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await newTestDatabase(kind))
  const servers = [stack.use(await serveFrom(url)).server, stack.use(await serveFrom(url)).server] as const
  return Object.assign(stack.move(), {
    servers,
    async change(statement: string): Promise<void> {
      if (kind === 'postgres') return await ask(url, statement)
      using database = new Database(url.replace('sqlite:', ''), { readwrite: true, strict: true })
      database.run('PRAGMA busy_timeout = 5000')
      database.run(statement)
    },
    /** Both processes show these animals, by their ids, and no others. */
    async expectShown(animals: ReadonlyMap<number, string>) {
      const listed = (status: string) => `[${[...animals.values()].filter(text => text.includes(status)).join()}]`
      for (const server of servers) {
        const get = (path: string) => server.fetch(`/pets${path}`, key)
        expect(await (await get('')).text()).toBe(listed(''))
        for (const status of ['available', 'sold'])
          expect(await (await get(`?status=${status}`)).text()).toBe(listed(`"status":"${status}"`))
        for (const id of [1, 2, 3, 4]) {
          const found = await get(`/${id}`)
          expect(found.ok ? await found.text() : found.status).toBe(animals.get(id) ?? 404)
        }
        const pages: string[] = []
        for (let query: string | undefined = '?limit=1'; query; ) {
          const page = await get(query)
          pages.push(await page.text())
          query = /\?[^>]+/.exec(page.headers.get('link') ?? '')?.[0]
        }
        expect(pages).toEqual([...animals.values()].map(text => `[${text}]`))
      }
    },
  })
}

/** The number is part of the animal and of its Idempotency-Key. */
async function add({ url }: Server, number: number) {
  const headers = { authorization: `Bearer ${key}`, 'Idempotency-Key': `animal-${number}` }
  const body = `{"name":"Animal ${number}","categoryId":7,"status":"available"}`
  const response = await fetch(`${url}/pets`, { method: 'POST', headers, body })
  const replayed = response.headers.get('idempotency-replayed')
  return { replayed, status: response.status, text: await response.text() }
}

function testsOn(kind: StoreKind): void {
  test('both processes show each change of docs/operating.md at once, and no id or key is used again', async () => {
    await using two = await startTwo(kind)
    const animals = new Map<number, string>()
    for (const id of [1, 2, 3, 4]) animals.set(id, (await add(two.servers[0], id)).text)
    const first = new Map(animals)
    const cursor = (await two.servers[0].fetch('/pets?limit=3', key)).headers.get('x-next-cursor')
    await two.expectShown(animals)
    const [sell = '', rename = '', remove = '', ...others] = block.trimEnd().split('\n')
    expect(others).toEqual([])
    await two.change(sell)
    await two.expectShown(animals.set(2, '{"id":2,"name":"Animal 2","categoryId":7,"status":"sold"}'))
    await two.change(rename)
    await two.expectShown(animals.set(2, '{"id":2,"name":"Rex","categoryId":8,"status":"sold"}'))
    await two.change(remove)
    animals.delete(3)
    await two.expectShown(animals)
    // The cursor names the deleted animal.
    expect(await (await two.servers[0].fetch(`/pets?cursor=${cursor}`, key)).text()).toBe(`[${animals.get(4)}]`)
    await two.change('DELETE FROM pets WHERE id = 4')
    animals.delete(4)
    for (const server of two.servers)
      for (const id of [2, 3, 4])
        expect(await add(server, id)).toEqual({ replayed: 'true', status: 201, text: `${first.get(id)}` })
    await two.expectShown(animals)
    const { text } = await add(two.servers[0], 5)
    expect(text).toStartWith('{"id":5,')
    await two.expectShown(animals.set(5, text))
  })

  test('the database refuses wrong values and stays unchanged', async () => {
    await using two = await startTwo(kind)
    const { text } = await add(two.servers[0], 1)
    for (const [assignment, message] of [
      ["name = ''", /name of 1 to 1,000 characters, not blank/],
      ["name = ' \u3000'", /name of 1 to 1,000 characters, not blank/],
      [`name = '${'x'.repeat(1_001)}'`, /name of 1 to 1,000 characters, not blank/],
      [`name = 'a' || ${kind === 'sqlite' ? 'char' : 'chr'}(0)`, /not blank|null character not permitted/],
      ['name = NULL', /NOT NULL constraint failed: pets.name|null value in column "name"/],
      ["status = 'gone'", /status/],
      ['id = 9', /the id of an animal cannot change/],
      ['category_id = 9223372036854775808', /category_id|out of range/],
    ] as const) {
      await expect(two.change(`UPDATE pets SET ${assignment}`), assignment).rejects.toThrow(message)
    }
    await two.expectShown(new Map([[1, text]]))
  })
}

describe('SQLite: correcting an animal', () => testsOn('sqlite'))
describeWithPostgres('PostgreSQL: correcting an animal', () => testsOn('postgres'))
