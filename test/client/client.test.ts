import { afterAll, beforeAll, expect, test } from 'bun:test'
import * as client from '../../src/client/index.ts'
import { keepAnimals, type Service, startService } from '../support/service.ts'
import { startLossyProxy } from './lossy-proxy.ts'

const rex = { name: 'Rex', categoryId: 7n, status: 'available' } as const

function petsAt(service: Service, options: Partial<client.ClientOptions> = {}): client.Pets {
  const base = { baseUrl: `${service.origin}/v1`, apiKey: service.key, backoffMs: 5 }
  return new client.PetstoreClient({ ...base, ...options } as client.ClientOptions).pets
}

/** Used by the tests that do not depend on its content. */
let shared: Service
beforeAll(async () => {
  shared = await startService()
})
afterAll(() => shared[Symbol.asyncDispose]())

test('animals come back exactly as they were added, with ids above 2^53', async () => {
  await using service = await startService()
  const kept = { id: 2n ** 53n, name: 'Before', categoryId: 1n }
  await keepAnimals(service, [kept])
  const pets = petsAt(service)
  const categories = [-(2n ** 63n), -(2n ** 53n) - 1n, 0n, 2n ** 53n + 1n, 2n ** 63n - 1n]
  const names = ['  Rex  ', '犬 😀', '\u001b[31m\n', '"\\"', '{"id":9223372036854775807}']
  const added = [kept]
  for (const [index, name] of names.entries()) {
    const newPet = { name, categoryId: categories[index] ?? 0n }
    const pet = await pets.create(newPet)
    expect(pet).toStrictEqual({ id: 2n ** 53n + 1n + BigInt(index), ...newPet })
    added.push(pet)
  }
  expect(await Array.fromAsync(pets.list({ limit: 2 }))).toStrictEqual(added)
  expect(await pets.get(2n ** 53n + 1n)).toStrictEqual(added[1] as client.Pet)
})

test('a list shows every animal with its status once, in order, for any page size', async () => {
  await using service = await startService()
  for (let i = 0; i < 45; i++) await service.stores.pets.create({ ...rex, status: 'sold' })
  await service.stores.pets.create({ name: 'Kim', categoryId: 7n })
  const pets = petsAt(service)
  const ids = Array.from({ length: 45 }, (_, i) => BigInt(i + 1))
  for (const limit of [undefined, 7, 45, 100]) {
    const listed = await Array.fromAsync(pets.list({ limit, status: 'sold' }))
    expect(listed.map(({ id }) => id)).toEqual(ids)
  }
  const pages = await Array.fromAsync(pets.list({ limit: 20 }).pages())
  expect(pages.map(page => page.pets.length)).toEqual([20, 20, 6])
  expect(await pets.list({ status: 'pending' }).page()).toStrictEqual({ pets: [] })
})

test.each<[string, object, () => client.Pets, client.NewPet]>([
  [
    'UnauthorizedError',
    { code: 'invalid_api_key' },
    () => petsAt(shared, { apiKey: 'not-a-key-of-this-service' }),
    rex,
  ],
  ['InvalidRequestError', { code: 'invalid_request', status: 400 }, () => petsAt(shared), { ...rex, name: ' ' }],
  ['InvalidRequestError', { code: 'body_too_large' }, () => petsAt(shared), { ...rex, name: 'x'.repeat(70_000) }],
])('a refusal of the service is an %s with its code %j and a request id', async (name, details, pets, newPet) => {
  const error = await pets()
    .create(newPet)
    .catch(error => error)
  expect(error).toBeInstanceOf(client.PetstoreError)
  expect(error).toMatchObject({ name, ...details, requestId: expect.stringMatching(/./) })
})

test('a read-only key lists, and is forbidden to add', async () => {
  const pets = petsAt(shared, { apiKey: await shared.newKey({ permission: 'read-only' }) })
  await pets.list().page()
  const error = await pets.create(rex).catch(error => error)
  expect(error).toMatchObject({ name: 'ForbiddenError', code: 'read_only_key', status: 403 })
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
  for (let i = 0; i < 3; i++) await petsAt(service).create(rex)
  const list = petsAt(service, { retries: 0 }).list({ limit: 1 })
  const error = await Array.fromAsync(list).catch(error => error)
  expect(error).toMatchObject({ name: 'RateLimitedError', status: 429, retryAfterSeconds: 1 })
})

test('a creation whose responses are lost is retried, and adds one animal', async () => {
  await using service = await startService()
  await using proxy = await startLossyProxy(service.port, 2)
  const pet = await petsAt(service, { baseUrl: `http://127.0.0.1:${proxy.port}/v1` }).create(rex)
  expect(pet).toEqual({ ...rex, id: 1n })
  expect(proxy.connections).toBe(3)
  expect(await Array.fromAsync(petsAt(service).list())).toEqual([pet])
})

test('a deprecated operation is reported with its dates and links, also for an absent animal', async () => {
  const notices: client.DeprecationNotice[] = []
  const pets = petsAt(shared, { onDeprecation: notice => notices.push(notice) })
  await pets.create(rex)
  expect(notices).toEqual([])
  const error = await pets.get(99).catch(error => error)
  expect(error).toMatchObject({ name: 'NotFoundError', code: 'pet_not_found', message: 'No animal has id 99' })
  const links = [
    { rel: 'deprecation', href: `${shared.origin}/openapi.json` },
    { rel: 'successor-version', href: `${shared.origin}/v1/pets?status=available` },
  ]
  const dates = { deprecation: new Date('2026-11-15T00:00:00Z'), sunset: new Date('2030-12-05T00:00:00Z') }
  expect(notices).toEqual([{ operation: 'getPet', ...dates, links }])
})
