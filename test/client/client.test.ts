import { describe, expect, test } from 'bun:test'
import * as client from '../../src/client/index.ts'
import { startLossyProxy } from '../support/lossy-proxy.ts'
import { keepAnimals, type Service, startService } from '../support/service.ts'

const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n
const rex = { name: 'Rex', categoryId: 7n, status: 'available' } as const

type Options = Partial<Omit<client.ClientOptions, 'baseUrl' | 'baseUrls' | 'environment'>>

function storeAt(service: Service, options: Options = {}): client.PetstoreClient {
  return new client.PetstoreClient({
    baseUrl: `${service.origin}/v1`,
    apiKey: service.key,
    backoffMs: 5,
    ...options,
  })
}

async function all(pets: AsyncIterable<client.Pet>): Promise<client.Pet[]> {
  return await Array.fromAsync(pets)
}

describe('animals', () => {
  test('come back as they were added, over the whole range of 64 bits', async () => {
    await using service = await startService()
    const { pets } = storeAt(service)
    const added: client.Pet[] = []
    for (const categoryId of [
      int64Min,
      -(2n ** 53n) - 1n,
      -1n,
      0n,
      2n ** 53n - 1n,
      2n ** 53n + 1n,
      int64Max,
    ]) {
      added.push(await pets.create({ name: `"${categoryId}" in {"id":${int64Max}}`, categoryId }))
    }
    expect(added.map(({ id }) => id)).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n])
    expect(added.map(({ categoryId }) => categoryId)).toEqual([
      -9223372036854775808n,
      -9007199254740993n,
      -1n,
      0n,
      9007199254740991n,
      9007199254740993n,
      9223372036854775807n,
    ])
    expect(await all(pets.list())).toEqual(added)
    expect(await pets.get(7n)).toEqual(added[6] as client.Pet)
  })

  test('have exact ids beyond 2^53', async () => {
    await using service = await startService()
    await keepAnimals(service, [{ id: 9007199254740992n, name: 'Before', categoryId: 1n }])
    const { pets } = storeAt(service)
    const added = [await pets.create(rex), await pets.create(rex)]
    expect(added.map(({ id }) => id)).toEqual([9007199254740993n, 9007199254740994n])
    expect((await all(pets.list({ limit: 1 }))).slice(1)).toEqual(added)
    expect(await pets.get(9007199254740993n)).toEqual(added[0] as client.Pet)
  })

  test.each(['Rex', '  Rex  ', '犬 😀', '\u001b[31m\n', '"\\"', 'é', '1234567890123456789', '</script>'])(
    'keep the name %j',
    async name => {
      await using service = await startService()
      const { pets } = storeAt(service)
      const pet = await pets.create({ name, categoryId: 7 })
      expect(pet).toStrictEqual({ id: 1n, name, categoryId: 7n })
      expect(await all(pets.list())).toStrictEqual([pet])
    },
  )

  test('are found by their status, and without one by none', async () => {
    await using service = await startService()
    const { pets } = storeAt(service)
    const sold = await pets.create({ ...rex, status: 'sold' })
    await pets.create({ name: 'Kim', categoryId: 7n })
    expect(await all(pets.list({ status: 'sold' }))).toEqual([sold])
    expect(await all(pets.list({ status: 'pending' }))).toEqual([])
  })
})

describe.each([
  ['relative links', {}],
  ['absolute links', { publicUrl: true }],
])('a walk over %s', (_what, { publicUrl = false }: { publicUrl?: boolean }) => {
  test('shows every animal once, in order, at any size of a page', async () => {
    await using inner = await startService()
    for (let i = 0; i < 45; i++)
      await inner.stores.pets.create({ name: 'Rex', categoryId: BigInt(i), status: 'sold' })
    const fetch = publicUrl ? withAbsoluteLinks(inner.origin) : undefined
    const { pets } = storeAt(inner, { fetch })
    const ids = Array.from({ length: 45 }, (_, i) => BigInt(i + 1))
    for (const limit of [undefined, 1, 7, 45, 100]) {
      const walked = await all(pets.list({ limit, status: 'sold' }))
      expect(walked.map(({ id }) => id)).toEqual(ids)
    }
    const sizes: number[] = []
    for await (const page of pets.list({ limit: 20 }).pages()) sizes.push(page.pets.length)
    expect(sizes).toEqual([20, 20, 5])
  })
})

/** As a service with a public base address answers. */
function withAbsoluteLinks(origin: string): client.Fetch {
  return async (url, init) => {
    const response = await fetch(url, init)
    const headers = new Headers(response.headers)
    headers.set('link', (headers.get('link') ?? '').replace('</', `<${origin}/`))
    return new Response(await response.arrayBuffer(), { status: response.status, headers })
  }
}

test('page by page, next leads on until it is absent', async () => {
  await using service = await startService()
  const { pets } = storeAt(service)
  for (let i = 0; i < 3; i++) await pets.create(rex)
  const first = await pets.list({ limit: 2 }).page()
  expect(first.pets.map(({ id }) => id)).toEqual([1n, 2n])
  const second = await first.next?.()
  expect(second?.pets.map(({ id }) => id)).toEqual([3n])
  expect(second?.next).toBeUndefined()
})

describe('a refusal', () => {
  test.each([
    [
      'a wrong key',
      client.UnauthorizedError,
      'invalid_api_key',
      401,
      { apiKey: 'no-key-of-this-service' },
      rex,
    ],
    ['a blank name', client.InvalidRequestError, 'invalid_request', 400, {}, { ...rex, name: ' ' }],
    [
      'too long a body',
      client.InvalidRequestError,
      'body_too_large',
      413,
      {},
      { ...rex, name: 'x'.repeat(70_000) },
    ],
  ])('of %s', async (_what, ErrorClass, code, status, options, pet) => {
    await using service = await startService()
    const error = await storeAt(service, options)
      .pets.create(pet)
      .catch(error => error)
    expect(error).toBeInstanceOf(ErrorClass)
    expect(error).toMatchObject({ code, status, requestId: expect.stringMatching(/./) })
  })

  test('of a read-only key that would add', async () => {
    await using service = await startService()
    const { pets } = storeAt(service, { apiKey: await service.newKey({ permission: 'read-only' }) })
    expect(await pets.list().page()).toEqual({ pets: [] })
    const error = await pets.create(rex).catch(error => error)
    expect(error).toBeInstanceOf(client.ForbiddenError)
    expect(error).toMatchObject({ code: 'read_only_key', status: 403 })
  })

  test('of an animal that is not there', async () => {
    await using service = await startService()
    const error = await storeAt(service)
      .pets.get(99)
      .catch(error => error)
    expect(error).toBeInstanceOf(client.NotFoundError)
    expect(error).toMatchObject({ code: 'pet_not_found', status: 404, message: 'No animal has id 99' })
  })

  test('of a limit beyond the bounds', async () => {
    await using service = await startService()
    const error = await storeAt(service)
      .pets.list({ limit: 101 })
      .page()
      .catch(error => error)
    expect(error).toBeInstanceOf(client.InvalidRequestError)
    expect(error.message).toBe('Cannot read limit "101": expected a whole number from 1 to 100')
  })

  test('of another animal under a used key', async () => {
    await using service = await startService()
    const { pets } = storeAt(service)
    const options = { idempotencyKey: 'order-4711' }
    const first = await pets.create(rex, options)
    expect(await pets.create(rex, options)).toEqual(first)
    const error = await pets.create({ ...rex, name: 'Tom' }, options).catch(error => error)
    expect(error).toMatchObject({ code: 'idempotency_key_reused', status: 422 })
    expect(await all(pets.list())).toHaveLength(1)
  })
})

test('a rate limit is waited out', async () => {
  await using service = await startService({ rateLimit: { requests: 2, seconds: 1 } })
  const { pets } = storeAt(service)
  for (let i = 0; i < 5; i++) await pets.create(rex)
  const error = await all(storeAt(service, { retries: 0 }).pets.list({ limit: 1 })).catch(error => error)
  expect(error).toBeInstanceOf(client.RateLimitedError)
  expect(error).toMatchObject({ status: 429, retryAfterSeconds: 1 })
})

test('a creation whose answers are lost on the way is retried, and adds one animal', async () => {
  await using service = await startService()
  await using proxy = await startLossyProxy(service.port, 2)
  const store = new client.PetstoreClient({
    baseUrl: `http://127.0.0.1:${proxy.port}/v1`,
    apiKey: service.key,
    backoffMs: 5,
  })
  const pet = await store.pets.create(rex)
  expect(pet).toEqual({ ...rex, id: 1n })
  expect(proxy.connections).toBe(3)
  expect(await all(storeAt(service).pets.list())).toEqual([pet])
})

test('a deprecated operation is told, with its dates and where to read on', async () => {
  await using service = await startService()
  const notices: client.DeprecationNotice[] = []
  const { pets } = storeAt(service, { onDeprecation: notice => notices.push(notice) })
  const { id } = await pets.create(rex)
  expect(notices).toEqual([])
  await pets.get(id)
  expect(notices).toEqual([
    {
      operation: 'getPet',
      deprecation: new Date('2026-11-15T00:00:00Z'),
      sunset: new Date('2030-12-05T00:00:00Z'),
      links: [
        { rel: 'deprecation', href: `${service.origin}/openapi.json` },
        { rel: 'successor-version', href: `${service.origin}/v1/pets?status=available` },
      ],
    },
  ])
})

test('the environment decides which deployment is asked', async () => {
  await using production = await startService({ environmentKey: 'one-key-for-both' })
  await using staging = await startService({ environmentKey: 'one-key-for-both' })
  const baseUrls = { production: `${production.origin}/v1`, staging: `${staging.origin}/v1` }
  const store = new client.PetstoreClient({ baseUrls, environment: 'staging', apiKey: 'one-key-for-both' })
  await store.pets.create(rex)
  expect((await staging.call('/v1/pets')).json).toHaveLength(1)
  expect((await production.call('/v1/pets')).json).toHaveLength(0)
})
