import { expect, setDefaultTimeout, test } from 'bun:test'
import { describeWithPostgres } from '../support/postgres.ts'
import { testMsMax } from '../support/process.ts'
import { keepAnimals, type Service, startService } from '../support/service.ts'

setDefaultTimeout(testMsMax)

const post = (body: string, key?: string) => ({ method: 'POST', path: '/v1/pets', body, key })
const get = (path: string, method = 'GET') => ({ method, path })
const animal = (name: string, categoryId: unknown, status = '"sold"') =>
  post(`{"name":${JSON.stringify(name)},"categoryId":${categoryId}${status && `,"status":${status}`}}`)

const rex = '{"name":"Rex","categoryId":9223372036854775807}'
const categoryIds = '9223372036854775807 -9223372036854775808 9007199254740993 922337203685477580.7e1 0 -0 1e3'.split(
  ' ',
)
const ids = '1 2 10 27 0 -1 01 9007199254740993 9223372036854775807 -9223372036854775808'.split(' ')
const names = [
  '  Rex ',
  'Zoë',
  'Zoe\u0308',
  '\u202eכלב',
  '🐕‍🦺',
  '%_\\"\'`$1 {a,b} NULL',
  'NULL',
  '{}',
  '"quoted","list"',
]
const longNames = ['a\nb\tc\r\u0001\u007f', '\u2028\ufeff x', '\uffff\u{10ffff}', 'ß'.repeat(1_000), '🐕'.repeat(1_000)]
const statuses = ['"available"', '"pending"', '"sold"', '']

/** Requests whose responses come from the store. Other responses do not depend on the engine. */
const requests: readonly { method: string; path: string; body?: string; key?: string | undefined }[] = [
  ...categoryIds.map(categoryId => animal('Digits', categoryId)),
  ...[...names, ...longNames].map((name, index) => animal(name, index, statuses[index % 4])),
  ...Array.from({ length: 45 }, (_, i) => animal(`Animal ${i}`, i - 20, statuses[i % 4])),
  ...[1, 7, 20, 100].flatMap(limit =>
    ['', '&status=available', '&status=pending', '&status=sold'].map(status => get(`/v1/pets?limit=${limit}${status}`)),
  ),
  get('/v1/pets?limit=2', 'HEAD'),
  ...ids.map(id => get(`/v1/pets/${id}`)),
  ...[post(rex, 'order-1'), post(rex, 'order-1'), post(rex.replace('Rex', 'Max'), 'order-1')],
  ...[post('{"name":""}', 'order-2'), post(rex, 'order-2'), post(rex, 'x'.repeat(255))],
]

const nextOf = ({ headers }: { headers: Headers }) => /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]

/** Every response without date and request id. Lists are followed to their last page. */
async function responsesOf(service: Service, sent: typeof requests) {
  const responses: { request: string; status: number; headers: string[][]; text: string }[] = []
  for (const { path: first, method, body, key } of sent) {
    for (let path: string | undefined = first; path !== undefined; ) {
      const headers = { ...(key && { 'idempotency-key': key }) }
      const answer = await service.call(path, { method, headers, ...(body !== undefined && { body }) })
      const compared = [...answer.headers].filter(([name]) => !/^(date|x-request-id)$/.test(name))
      responses.push({ request: `${method} ${path}`, status: answer.status, headers: compared, text: answer.text })
      path = nextOf(answer)
    }
  }
  return responses
}

describeWithPostgres('SQLite and PostgreSQL', () => {
  test('give the same responses, byte for byte, and accept the cursors of one another', async () => {
    await using sqlite = await startService({ store: 'sqlite' })
    await using postgres = await startService({ store: 'postgres' })
    const both = async (sent: typeof requests) => {
      const onSqlite = await responsesOf(sqlite, sent)
      expect(await responsesOf(postgres, sent)).toEqual(onSqlite)
      return onSqlite
    }
    const empty = await both([get('/v1/pets'), get('/v1/pets?status=sold&limit=1'), get('/v1/pets/1')])
    expect(empty.map(({ status }) => status)).toEqual([200, 200, 404])
    const large = [1n, 9007199254740991n, 9007199254740993n]
    const kept = large.map(id => ({ id, name: `Animal ${id}`, categoryId: id, status: 'sold' as const }))
    for (const service of [sqlite, postgres]) await keepAnimals(service, kept)
    const byStatus = Map.groupBy(await both(requests), ({ status }) => status)
    // Equal refusals alone would prove nothing.
    expect([...byStatus.keys()].toSorted()).toEqual([200, 201, 400, 404, 422])
    expect(byStatus.get(200)?.length).toBeGreaterThan(150)
    expect(byStatus.get(201)?.length).toBeGreaterThan(65)

    for (const { database } of [sqlite, postgres]) await database.setLastId(9223372036854775805n)
    const last = animal('Last', 1)
    const full = await both([last, last, last, get('/v1/pets?limit=100'), get('/v1/pets/9223372036854775807')])
    expect(full.map(({ status }) => status)).toEqual([201, 201, 503, 200, 200])

    let alternating = ''
    let path: string | undefined = '/v1/pets?limit=3'
    for (let pages = 0; path !== undefined; pages++) {
      const answer = await (pages % 2 ? postgres : sqlite).call(path)
      alternating += answer.text
      path = nextOf(answer)
    }
    expect(alternating.replaceAll('][', ',')).toBe(full[3]?.text ?? '')
  })
})
