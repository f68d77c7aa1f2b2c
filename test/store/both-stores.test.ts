import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { generateApiKey } from '../../src/api-key.ts'
import type { StoreKind } from '../support/database.ts'
import { testMsMax } from '../support/process.ts'
import { keepAnimals, type Service, startService } from '../support/service.ts'
import { describeWithPostgres } from '../support/with-postgres.ts'
import { type Caller, type RecordedRequest, recordedRequests } from './recorded-requests.ts'

setDefaultTimeout(testMsMax)

/** A request and all of its answer, but for what differs from one moment to the next. */
interface Exchange {
  readonly request: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

type Keys = Readonly<Record<NonNullable<Caller>, string>>

async function keysOf({ stores, key, newKey }: Service): Promise<Keys> {
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

const nextOf = (headers: Readonly<Record<string, string>>) =>
  /^<([^>]+)>; rel="next"$/.exec(headers['link'] ?? '')?.[1]

/** Sends them one after the other, and gives every answer that there was on the way. */
async function play(service: Service, requests: readonly RecordedRequest[]): Promise<Exchange[]> {
  const keys = await keysOf(service)
  const exchanges: Exchange[] = []
  let cursor = ''
  for (const { path: from, method = 'GET', as = 'clerk', headers, body, walk } of requests) {
    for (let path: string | undefined = from.replace('{cursor}', cursor); path !== undefined; ) {
      const answer = await service.call(path, {
        method,
        key: as && keys[as],
        ...(headers && { headers }),
        ...(body !== undefined && { body }),
      })
      const told = Object.fromEntries(
        [...answer.headers].filter(([name]) => !/^(date|x-request-id)$/.test(name)),
      )
      exchanges.push({
        request: `${method} ${path}`,
        status: answer.status,
        headers: told,
        body: answer.text,
      })
      const next = nextOf(told)
      cursor = /cursor=([^&]+)/.exec(next ?? '')?.[1] ?? cursor
      path = walk && next
    }
  }
  return exchanges
}

describeWithPostgres('the same requests on SQLite and on PostgreSQL', () => {
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

  test('are answered the same: status, headers, and the body byte for byte', async () => {
    const [onSqlite, onPostgres] = [
      await play(sqlite, recordedRequests),
      await play(postgres, recordedRequests),
    ]
    for (const [index, exchange] of onSqlite.entries()) expect(onPostgres[index]).toEqual(exchange)
    expect(onPostgres).toHaveLength(onSqlite.length)
    // Otherwise it might be the same refusal, again and again.
    const answered = Map.groupBy(onSqlite, ({ status }) => status)
    expect([...answered.keys()].toSorted()).toEqual([200, 201, 400, 401, 403, 404, 405, 413, 415, 422])
    expect(answered.get(200)?.length).toBeGreaterThan(150)
    expect(answered.get(201)?.length).toBeGreaterThan(75)
  })

  test('lead from page to page even where every page comes from the other store', async () => {
    const ids: unknown[] = []
    let path: string | undefined = '/v1/pets?limit=3'
    for (let pages = 0; path !== undefined; pages++) {
      const { json, headers } = await (pages % 2 ? postgres : sqlite).call(path)
      ids.push(...json.map(({ id }: { id: number }) => id))
      path = nextOf({ link: headers.get('link') ?? '' })
    }
    expect(ids.length).toBeGreaterThan(75)
    expect(ids).toEqual(Array.from({ length: ids.length }, (_, index) => index + 1))
  })

  test('are answered the same where ids are the largest there are, and where none is left', async () => {
    const ids = [1n, 9007199254740991n, 9007199254740993n]
    const requests: readonly RecordedRequest[] = [
      { path: '/v1/pets?limit=1', walk: true },
      { path: '/v1/pets?limit=2&status=sold', walk: true },
      { path: '/v1/pets/9007199254740992' },
      { path: '/v1/pets/9007199254740993' },
      ...Array.from({ length: 3 }, () => ({
        method: 'POST',
        path: '/v1/pets',
        body: '{"name":"Last","categoryId":1,"status":"sold"}',
      })),
      { path: '/v1/pets?limit=1', walk: true },
      { path: '/v1/pets?limit=1&status=sold', walk: true },
      { path: '/v1/pets/9223372036854775807' },
    ]
    const playedOn = async (store: StoreKind) => {
      await using service = await startService({ store })
      await keepAnimals(
        service,
        ids.map(id => ({ id, name: `Animal ${id}`, categoryId: id, status: 'sold' })),
      )
      await service.database.setLastId(9223372036854775805n)
      return play(service, requests)
    }
    const [onSqlite, onPostgres] = [await playedOn('sqlite'), await playedOn('postgres')]
    for (const [index, exchange] of onSqlite.entries()) expect(onPostgres[index]).toEqual(exchange)
    expect(onSqlite.map(({ body }) => body).join()).toContain('"id":9223372036854775807')
  })
})
