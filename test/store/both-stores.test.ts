import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { generateApiKey } from '../../src/api-key.ts'
import { describeWithPostgres } from '../support/postgres.ts'
import { testMsMax } from '../support/process.ts'
import type { StoreKind } from '../support/service.ts'
import { keepAnimals, type Service, startService } from '../support/service.ts'

setDefaultTimeout(testMsMax)

interface SentRequest {
  readonly method?: string
  /** `{cursor}` is replaced by the last cursor in a `Link` header. */
  readonly path: string
  readonly as?: 'clerk' | 'other clerk' | 'reader' | 'revoked' | 'expired' | 'stranger'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Follows the `Link` of each page to the last. */
  readonly walk?: true
}

const get = (path: string, more: Partial<SentRequest> = {}): SentRequest => ({ path, ...more })
const post = (body: string, more: Partial<SentRequest> = {}): SentRequest => ({
  method: 'POST',
  path: '/v1/pets',
  body,
  ...more,
})
const animal = (name: string, categoryId = '1', status?: string) =>
  post(`{"name":${JSON.stringify(name)},"categoryId":${categoryId}${status ? `,"status":"${status}"` : ''}}`)
const once = (key: string, body: string, as: SentRequest['as'] = 'clerk') =>
  post(body, { headers: { 'idempotency-key': key }, as })

const statuses = ['available', 'pending', 'sold', undefined]
const rex = '{"name":"Rex","categoryId":9223372036854775807}'
const integers =
  '9223372036854775807 -9223372036854775808 9007199254740993 -9007199254740993 922337203685477580.7e1 0 -0 1e3'
const names = [
  '  Rex ',
  'Zoë',
  'Zoe\u0308',
  'كلب',
  '\u202eכלב',
  '🐕‍🦺',
  '𝒜𝓃𝒾𝓂𝒶𝓁',
  "Robert'); DROP TABLE pets;--",
  '%_\\"\'`$1 {a,b} NULL',
  'NULL',
  '{}',
  '"quoted","list"',
  'a\nb\tc\r\u0001\u007f',
  '\u2028\ufeff x',
  '\uffff\u{10ffff}',
  'ß'.repeat(1_000),
  '🐕'.repeat(1_000),
]

/** Requests whose responses come from the store. Other responses do not depend on the engine. */
const requests: readonly SentRequest[] = [
  get('/v1/pets'),
  get('/v1/pets?status=sold&limit=1'),
  get('/v1/pets/1'),
  ...integers.split(' ').map(categoryId => animal('Digits', categoryId, 'sold')),
  ...names.map((name, index) => animal(name, String(index), statuses[index % 4])),
  animal('Too large', '9223372036854775808'),
  ...Array.from({ length: 45 }, (_, i) => animal(`Animal ${i}`, String(i - 20), statuses[i % 4])),
  ...[1, 7, 20, 44, 100].flatMap(limit => [
    get(`/v1/pets?limit=${limit}`, { walk: true }),
    ...statuses.filter(Boolean).map(status => get(`/v1/pets?limit=${limit}&status=${status}`, { walk: true as const })),
  ]),
  get('/v1/pets?limit=2', { method: 'HEAD' }),
  get('/v1/pets?limit=3&cursor={cursor}'),
  get('/v1/pets?limit=2&cursor={cursor}&status=sold'),
  get('/v1/pets?status=pending&limit=5&cursor={cursor}'),
  get('/v1/pets?cursor=AAAAAAAAAAAAAAAAAA'),
  ...['1', '2', '10', '27', '0', '-1', '01', '9223372036854775807', '-9223372036854775808'].map(id =>
    get(`/v1/pets/${id}`),
  ),
  ...(['reader', 'revoked', 'expired', 'stranger'] as const).map(as => get('/v1/pets', { as })),
  post(rex, { as: 'reader' }),
  once('order-1', rex),
  once('order-1', rex),
  once('"order-1"', '{ "categoryId": 9223372036854775807.0, "name": "\\u0052ex" }'),
  once('order-1', '{"name":"Max","categoryId":9223372036854775807}'),
  once('order-1', rex, 'other clerk'),
  once('order-2', '{"name":""}'),
  once('order-2', rex),
  once('x'.repeat(255), rex),
  get('/v1/pets?limit=100', { walk: true }),
]

async function keysOf({ stores, key, newKey }: Service): Promise<Record<string, string>> {
  const revoked = await newKey({ name: 'revoked' })
  const found = (await stores.keys.list()).find(({ name }) => name === 'revoked')
  await stores.keys.revoke(found?.id ?? 0n, new Date())
  return {
    clerk: key,
    'other clerk': await newKey(),
    reader: await newKey({ permission: 'read-only' }),
    revoked,
    expired: await newKey({ expiresAt: new Date(Date.now() - 1_000) }),
    stranger: generateApiKey(),
  }
}

const nextOf = (link: string | null) => /^<([^>]+)>; rel="next"$/.exec(link ?? '')?.[1]

/** Sends the requests one after the other, and returns every response without date and request id. */
async function responsesOf(service: Service, sent: readonly SentRequest[]) {
  const keys = await keysOf(service)
  const responses: { request: string; status: number; headers: string[][]; body: string }[] = []
  let cursor = ''
  for (const { path: first, method = 'GET', as = 'clerk', headers = {}, body, walk } of sent) {
    for (let path: string | undefined = first.replace('{cursor}', cursor); path !== undefined; ) {
      const key = keys[as] as string
      const answer = await service.call(path, { method, key, headers, ...(body !== undefined && { body }) })
      responses.push({
        request: `${method} ${path}`,
        status: answer.status,
        headers: [...answer.headers].filter(([name]) => !/^(date|x-request-id)$/.test(name)),
        body: answer.text,
      })
      const next = nextOf(answer.headers.get('link'))
      cursor = /cursor=([^&]+)/.exec(next ?? '')?.[1] ?? cursor
      path = walk && next
    }
  }
  return responses
}

describeWithPostgres('SQLite and PostgreSQL', () => {
  let sqlite: Service
  let postgres: Service
  beforeAll(async () => {
    sqlite = await startService({ store: 'sqlite' })
    postgres = await startService({ store: 'postgres' })
  })
  afterAll(async () => {
    await sqlite[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  test('give the same responses: status, headers, and the body byte for byte', async () => {
    const onSqlite = await responsesOf(sqlite, requests)
    const onPostgres = await responsesOf(postgres, requests)
    for (const [index, response] of onSqlite.entries()) expect(onPostgres[index]).toEqual(response)
    expect(onPostgres).toHaveLength(onSqlite.length)
    // Equal refusals alone would prove nothing.
    const byStatus = Map.groupBy(onSqlite, ({ status }) => status)
    expect([...byStatus.keys()].toSorted()).toEqual([200, 201, 400, 401, 403, 404, 422])
    expect(byStatus.get(200)?.length).toBeGreaterThan(150)
    expect(byStatus.get(201)?.length).toBeGreaterThan(70)
  })

  test('accept the cursors of one another', async () => {
    const ids: unknown[] = []
    let path: string | undefined = '/v1/pets?limit=3'
    for (let pages = 0; path !== undefined; pages++) {
      const { json, headers } = await (pages % 2 ? postgres : sqlite).call(path)
      ids.push(...json.map(({ id }: { id: number }) => id))
      path = nextOf(headers.get('link'))
    }
    expect(ids.length).toBeGreaterThan(70)
    expect(ids).toEqual(Array.from({ length: ids.length }, (_, index) => index + 1))
  })

  test('give the same responses with the largest ids, and when no id is left', async () => {
    const ids = [1n, 9007199254740991n, 9007199254740993n]
    const last = animal('Last', '1', 'sold')
    const sent = [
      get('/v1/pets?limit=1', { walk: true }),
      get('/v1/pets?limit=2&status=sold', { walk: true }),
      get('/v1/pets/9007199254740992'),
      get('/v1/pets/9007199254740993'),
      ...[last, last, last],
      get('/v1/pets?limit=1', { walk: true }),
      get('/v1/pets?limit=1&status=sold', { walk: true }),
      get('/v1/pets/9223372036854775807'),
    ]
    const responsesFrom = async (store: StoreKind) => {
      await using service = await startService({ store })
      await keepAnimals(
        service,
        ids.map(id => ({ id, name: `Animal ${id}`, categoryId: id, status: 'sold' })),
      )
      await service.database.setLastId(9223372036854775805n)
      return await responsesOf(service, sent)
    }
    const [onSqlite, onPostgres] = [await responsesFrom('sqlite'), await responsesFrom('postgres')]
    for (const [index, response] of onSqlite.entries()) expect(onPostgres[index]).toEqual(response)
    expect(onSqlite.map(({ body }) => body).join()).toContain('"id":9223372036854775807')
  })
})
