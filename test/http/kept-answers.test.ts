import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ask } from '../support/postgres.ts'
import { type Service, startService, storeUnderTest } from '../support/service.ts'

let service: Service

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service[Symbol.asyncDispose]())

/** What a person does who mends something by hand, in another program. */
async function byHand(statement: string): Promise<void> {
  const { url } = service.database
  if (storeUnderTest === 'postgres') return ask(url, statement)
  using database = new Database(url.replace('sqlite:', ''), { readwrite: true })
  database.run(statement)
}

test('an animal that was shown before is shown as it is now, whoever changed it', async () => {
  const { id } = await service.stores.pets.create({ name: 'Rex', categoryId: 1n })
  const shown = async () => (await service.call(`/v1/pets/${id}`)).json
  for (let i = 0; i < 10; i++) {
    await byHand(`UPDATE pets SET name = 'Rex ${i}' WHERE id = ${id}`)
    expect([await shown(), await shown()]).toMatchObject([{ name: `Rex ${i}` }, { name: `Rex ${i}` }])
  }
  await byHand(`DELETE FROM pets WHERE id = ${id}`)
  expect((await service.call(`/v1/pets/${id}`)).status).toBe(404)
})

test('every answer has a request id of its own, whether it was kept or not', async () => {
  const { id } = await service.stores.pets.create({ name: 'Rex', categoryId: 1n })
  const paths = Array.from({ length: 20 }, (_, i) => (i % 2 ? '/v1/pets' : `/v1/pets/${id}`))
  const answers = await Promise.all(paths.map(path => service.call(path)))
  expect(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size).toBe(paths.length)
})

test('an answer that was kept does not take on the headers that one request alone gets', async () => {
  const { id } = await service.stores.pets.create({ name: 'Rex', categoryId: 1n })
  const headersOf = async (headers?: Record<string, string>) =>
    [...(await service.call(`/v1/pets/${id}`, headers && { headers })).headers.keys()].sort()
  const before = await headersOf()
  expect(await headersOf({ prefer: 'handling=strict' })).toContain('preference-applied')
  expect(await headersOf()).toEqual(before)
})
