import { afterAll, beforeAll, expect, test } from 'bun:test'
import * as client from '../../src/client/index.ts'
import { keepAnimals, type Service, startService } from '../support/service.ts'
import { startLossyProxy } from './lossy-proxy.ts'

const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n
const rex = { name: 'Rex', categoryId: 7n, status: 'available' } as const

type Options = Partial<Omit<client.ClientOptions, 'baseUrl' | 'baseUrls' | 'environment'>>

function petsAt(service: Service, options: Options = {}): client.Pets {
  const baseUrl = `${service.origin}/v1`
  return new client.PetstoreClient({ baseUrl, apiKey: service.key, backoffMs: 5, ...options }).pets
}

/** Used by the tests that do not depend on its content. */
let shared: Service
beforeAll(async () => {
  shared = await startService()
})
afterAll(() => shared[Symbol.asyncDispose]())

test('animals come back exactly as they were added', async () => {
  await using service = await startService()
  const pets = petsAt(service)
  const categories = [int64Min, -(2n ** 53n) - 1n, 0n, 2n ** 53n + 1n, int64Max]
  const names = ['  Rex  ', '犬 😀', '\u001b[31m\n', '"\\"', `{"id":${int64Max}}`]
  const added: client.Pet[] = []
  for (const [index, name] of names.entries()) {
    const newPet = { name, categoryId: categories[index] ?? 0n }
    const pet = await pets.create(newPet)
    expect(pet).toStrictEqual({ id: BigInt(index + 1), ...newPet })
    added.push(pet)
  }
  expect(await Array.fromAsync(pets.list())).toStrictEqual(added)
  expect(await pets.get(5n)).toStrictEqual(added[4] as client.Pet)
})

test('ids above 2^53 are exact', async () => {
  await using service = await startService()
  await keepAnimals(service, [{ id: 9007199254740992n, name: 'Before', categoryId: 1n }])
  const pets = petsAt(service)
  const added = [await pets.create(rex), await pets.create(rex)]
  expect(added.map(({ id }) => id)).toEqual([9007199254740993n, 9007199254740994n])
  expect((await Array.fromAsync(pets.list({ limit: 1 }))).slice(1)).toEqual(added)
  expect(await pets.get(9007199254740993n)).toEqual(added[0] as client.Pet)
})

test.each([
  ['relative', undefined],
  ['absolute', absoluteLinks],
])('a list follows %s links and shows every animal with its status once, in order', async (_links, fetch) => {
  await using service = await startService()
  for (let i = 0; i < 45; i++) await service.stores.pets.create({ ...rex, status: 'sold' })
  await service.stores.pets.create({ name: 'Kim', categoryId: 7n })
  const pets = petsAt(service, { fetch })
  const ids = Array.from({ length: 45 }, (_, i) => BigInt(i + 1))
  for (const limit of [undefined, 1, 7, 45, 100]) {
    const listed = await Array.fromAsync(pets.list({ limit, status: 'sold' }))
    expect(listed.map(({ id }) => id)).toEqual(ids)
  }
  const pages = await Array.fromAsync(pets.list({ limit: 20 }).pages())
  expect(pages.map(page => page.pets.length)).toEqual([20, 20, 6])
  expect(await pets.list({ status: 'pending' }).page()).toStrictEqual({ pets: [] })
})

/** As if the service had a public base address. */
async function absoluteLinks(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  const headers = new Headers(response.headers)
  const link = headers.get('link')
  if (link !== null) headers.set('link', link.replaceAll('</v1', `<${new URL(url).origin}/v1`))
  return new Response(response.body, { status: response.status, headers })
}

test.each<[string, object, () => Promise<unknown>]>([
  [
    'a wrong key',
    { name: 'UnauthorizedError', code: 'invalid_api_key', status: 401 },
    () => petsAt(shared, { apiKey: 'not-a-key-of-this-service' }).create(rex),
  ],
  [
    'a blank name',
    { name: 'InvalidRequestError', code: 'invalid_request', status: 400 },
    () => petsAt(shared).create({ ...rex, name: ' ' }),
  ],
  [
    'a body that is too large',
    { name: 'InvalidRequestError', code: 'body_too_large', status: 413 },
    () => petsAt(shared).create({ ...rex, name: 'x'.repeat(70_000) }),
  ],
  [
    'an absent animal',
    { name: 'NotFoundError', code: 'pet_not_found', status: 404, message: 'No animal has id 99' },
    () => petsAt(shared).get(99),
  ],
  [
    'a limit of 101',
    { name: 'InvalidRequestError', message: 'limit is "101": expected an integer from 1 to 100' },
    () => petsAt(shared).list({ limit: 101 }).page(),
  ],
])('%s is an error of its class, with a request id', async (_what, expected, call) => {
  const error = await call().catch(error => error)
  expect(error).toBeInstanceOf(client.PetstoreError)
  expect(error).toMatchObject({ ...expected, requestId: expect.stringMatching(/./) })
})

test('a read-only key lists, and is forbidden to add', async () => {
  const pets = petsAt(shared, { apiKey: await shared.newKey({ permission: 'read-only' }) })
  await pets.list().page()
  const error = await pets.create(rex).catch(error => error)
  expect(error).toBeInstanceOf(client.ForbiddenError)
  expect(error).toMatchObject({ code: 'read_only_key', status: 403 })
})

test('an idempotencyKey adds one animal, and is refused for another', async () => {
  await using service = await startService()
  const pets = petsAt(service)
  const options = { idempotencyKey: 'order-4711' }
  const first = await pets.create(rex, options)
  expect(await pets.create(rex, options)).toEqual(first)
  const error = await pets.create({ ...rex, name: 'Tom' }, options).catch(error => error)
  expect(error).toMatchObject({ code: 'idempotency_key_reused', status: 422 })
  expect(await Array.fromAsync(pets.list())).toEqual([first])
})

test('the client waits for a rate limit', async () => {
  await using service = await startService({ rateLimit: { requests: 2, seconds: 1 } })
  const pets = petsAt(service)
  for (let i = 0; i < 5; i++) await pets.create(rex)
  const error = await Array.fromAsync(petsAt(service, { retries: 0 }).list({ limit: 1 })).catch(error => error)
  expect(error).toBeInstanceOf(client.RateLimitedError)
  expect(error).toMatchObject({ status: 429, retryAfterSeconds: 1 })
})

test('a creation whose responses are lost is retried, and adds one animal', async () => {
  await using service = await startService()
  await using proxy = await startLossyProxy(service.port, 2)
  const options = { baseUrl: `http://127.0.0.1:${proxy.port}/v1`, apiKey: service.key, backoffMs: 5 }
  const pet = await new client.PetstoreClient(options).pets.create(rex)
  expect(pet).toEqual({ ...rex, id: 1n })
  expect(proxy.connections).toBe(3)
  expect(await Array.fromAsync(petsAt(service).list())).toEqual([pet])
})

test('a deprecated operation is reported with its dates and links', async () => {
  const notices: client.DeprecationNotice[] = []
  const pets = petsAt(shared, { onDeprecation: notice => notices.push(notice) })
  const { id } = await pets.create(rex)
  expect(notices).toEqual([])
  await pets.get(id)
  expect(notices).toEqual([
    {
      operation: 'getPet',
      deprecation: new Date('2026-11-15T00:00:00Z'),
      sunset: new Date('2030-12-05T00:00:00Z'),
      links: [
        { rel: 'deprecation', href: `${shared.origin}/openapi.json` },
        { rel: 'successor-version', href: `${shared.origin}/v1/pets?status=available` },
      ],
    },
  ])
})
