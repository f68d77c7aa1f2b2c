import { expect, spyOn, test } from 'bun:test'
import { contractChecks } from '../../src/conform/contract.ts'
import { conform } from '../../src/conform/run.ts'
import { type Asked, answering, changing, type Defect, error, key, startWrongServer } from './wrong-server.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** Changes every request. */
function hearing(change: (asked: Asked) => Asked): Defect {
  return (asked, respond) => respond(change(asked))
}

const changedList = (change: (pets: readonly JsonObject[], asked: Asked) => unknown) =>
  changing((reply, asked) => (Array.isArray(reply.body) ? { ...reply, body: change(reply.body, asked) } : reply))
/** Changes every animal of a list. */
const listing = (change: (pet: JsonObject) => unknown) => changedList(pets => pets.map(change))
/** Responds with an Error of this status to the requests that match. */
const refusing = (status: number, when: (asked: Asked) => boolean) =>
  changing((reply, asked) => (when(asked) ? error(status) : reply))
/** Accepts requests without a key, or with a wrong one. */
const trusting = (method: string, path: RegExp, authorization: RegExp) =>
  hearing(asked => {
    const isTrusted = authorization.test(asked.headers.get('authorization') ?? 'none')
    if (asked.method !== method || !path.test(asked.path) || !isTrusted) return asked
    return { ...asked, headers: new Headers({ authorization: `Bearer ${key}` }) }
  })
/** Accepts a body that matches as a valid animal. */
const taking = (body: RegExp) =>
  hearing(asked =>
    asked.method === 'POST' && body.test(asked.body) ? { ...asked, body: '{"name":"Rex","categoryId":1}' } : asked,
  )
/** The same request with another query. */
const rewriting = (change: (query: URLSearchParams) => void) =>
  hearing(asked => {
    change(asked.query)
    return asked
  })

const [list, one] = [/^\/pets$/, /^\/pets\/./]
const [none, wrong] = [/^none$/, /wrong/]
const posts = (body: RegExp) => refusing(400, asked => asked.method === 'POST' && body.test(asked.body))
const having = (status: number, change: JsonObject) => answering(status, body => ({ ...body, ...change }))
const withEach = (change: (pet: JsonObject) => JsonObject) => listing(pet => ({ ...pet, ...change(pet) }))
const everyId = changing((reply, { path }) => (/\d{15}/.test(path) ? { status: 200, body: {} } : reply))
const withoutFilter = rewriting(query => query.delete('status'))
const withoutLimitOfStatus = rewriting(query => query.has('status') && query.delete('limit'))
const withDefaultLimit = (limit: string, ofStatus = limit) =>
  rewriting(query => query.has('limit') || query.set('limit', query.has('status') ? ofStatus : limit))
const rounded = (pet: JsonObject) => ({ ...pet, categoryId: BigInt(Number(pet['categoryId'])) })
const ascii = (pet: JsonObject) => ({ ...pet, name: String(pet['name']).replace(/[^ -~]/g, '?') })
const nullWithoutStatus = changing((reply, { body }) =>
  reply.status === 201 && !body.includes('status')
    ? { ...reply, body: { ...Object(reply.body), status: null } }
    : reply,
)
const typed = (isWrong: (status: number) => boolean, type: string) =>
  changing(reply => (isWrong(reply.status) ? { ...reply, type } : reply))

/** A part of a check's name, a part of its finding, and the server's defect. */
const rows: readonly (readonly [check: string, found: string, defect: Defect])[] = [
  ['GET /pets without a key is refused', 'returned 200', trusting('GET', list, none)],
  ['POST /pets without a key is refused', 'returned 201', trusting('POST', list, none)],
  ['GET /pets/{petId} without a key is refused', 'returned 200', trusting('GET', one, none)],
  ['GET /pets with a wrong key is refused', 'returned 200', trusting('GET', list, wrong)],
  ['POST /pets with a wrong key is refused', 'returned 201', trusting('POST', list, wrong)],
  ['GET /pets/{petId} with a wrong key is refused', 'returned 200', trusting('GET', one, wrong)],

  ['POST /pets is 201 with the Pet and its id', 'no id', answering(201, ({ id: _, ...pet }) => pet)],
  ['POST /pets returns the name and the categoryId as sent', 'REX', having(201, { name: 'REX' })],
  ['POST /pets accepts each status', '400', posts(/"pending"/)],
  ['POST /pets accepts an animal without a status', '400', posts(/^(?!.*"status")/)],
  ['POST /pets accepts an animal without a status', 'the status null', nullWithoutStatus],
  ['POST /pets returns a categoryId beyond 2^53 exactly', 'the categoryId 9007199254740992', answering(201, rounded)],

  ['POST /pets without a body is refused', '201', taking(/^$/)],
  ['POST /pets without a name is refused', '201', taking(/^(?!.*"name").*categoryId/)],
  ['POST /pets without a categoryId is refused', '201', taking(/^(?!.*"categoryId").*name/)],
  ['POST /pets with a name that is not a string is refused', '"name":true', taking(/"name":true/)],
  ['POST /pets with a categoryId that is not an integer is refused', '"7"', taking(/"categoryId":"7"/)],
  ['POST /pets with a categoryId above 64 bits is refused', '75808', taking(/9223372036854775808/)],
  ['POST /pets with an unknown status is refused', 'Available', taking(/"Available"/)],
  ['POST /pets with a body that is not an object is refused', 'POST /pets []', taking(/^\[\]$/)],
  ['POST /pets with a body that is not JSON is refused', 'name=Rex', taking(/^name=Rex$/)],

  ['GET /pets is 200 with a JSON array', '{"pets":[', changedList(pets => ({ pets }))],
  ['the id of every listed animal is an int64', 'the id "', withEach(({ id }) => ({ id: String(id) }))],
  ['the name of every listed animal is a string', 'null', withEach(() => ({ name: null }))],
  ['the categoryId of every listed animal', 'the categoryId 1.5', withEach(() => ({ categoryId: 1.5 }))],
  ['the status of every listed animal', 'SOLD', withEach(() => ({ status: 'SOLD' }))],
  ['no two listed or new animals have the same id', 'id 1 twice', withEach(() => ({ id: 1n }))],
  ['no two listed or new animals have the same id', 'id 7 twice', having(201, { id: 7n })],
  ['GET /pets without a limit', 'GET /pets lists 21', withDefaultLimit('21')],
  ['GET /pets without a limit', 'status=available lists 21', withDefaultLimit('20', '100')],
  ['GET /pets?limit accepts', 'limit=1 lists 20', rewriting(query => query.delete('limit'))],
  ['GET /pets?status lists only', 'status=available returned 200 with the status "sold"', withoutFilter],
  ['GET /pets?limit accepts', 'status=available lists ', withoutLimitOfStatus],
  ['in the list of its status', 'returned 200 []', changedList((pets, { query }) => (query.has('status') ? [] : pets))],

  ['as it was added or listed', 'the categoryId 9223372036854775808', answering(200, rounded)],
  ['as it was added or listed', 'the name', answering(200, ascii)],
  ['GET /pets/{petId} with the id of no animal is refused', 'returned 200', everyId],

  ['responses are application/json', 'text/html', typed(status => status === 200, 'text/html')],
  ['errors are application/json', 'problem+json', typed(status => status >= 400, 'application/problem+json')],
  ['the code of every Error is a string', 'the code 404', having(404, { code: 404n })],
  ['the message of every Error is a string', 'no message', answering(401, ({ message: _, ...body }) => body)],
  ['the status of every Error', 'the status 500', having(400, { status: 500n })],
]

/** The failures of a whole run against a server, as text: name, what was expected, what was found. */
async function listFailures(server: { readonly url: string; readonly key: string }): Promise<string[]> {
  const results = await conform({ baseUrl: server.url, key: server.key, readOnly: false })
  return results.flatMap(({ check: { name }, finding }) =>
    finding.outcome === 'failed' ? [`${name}: expected ${finding.expected}, found ${finding.found}`] : [],
  )
}

test('a server that decided otherwise passes the contract', async () => {
  using server = startWrongServer()
  const results = await conform({ baseUrl: server.url, key: server.key, readOnly: false })
  expect(results.filter(({ finding }) => finding.outcome !== 'passed')).toEqual([])
})

test.each(rows)('a server that breaks a rule fails its check and few others: %s', async (part, found, defect) => {
  using server = startWrongServer(defect)
  const failures = await listFailures(server)
  expect(failures.filter(failure => failure.includes(part))).toEqual([
    expect.stringMatching(new RegExp(`: expected .+, found .*${RegExp.escape(found)}`)),
  ])
  expect(failures.slice(3)).toEqual([])
})

test('every check has such a server', () => {
  expect(contractChecks.filter(({ name }) => !rows.some(([part]) => name.includes(part)))).toEqual([])
})

test('a check that needs what another check reports is skipped, and names that check', async () => {
  using server = startWrongServer(changedList(pets => ({ pets })))
  const results = await conform({ baseUrl: server.url, key: server.key, readOnly: false })
  const { finding } = results.find(({ check }) => check.name.startsWith('no two listed')) ?? {}
  const why = 'depends on the failed check: GET /pets is 200 with a JSON array'
  expect(finding).toEqual({ outcome: 'skipped', why })
})

test('a response without an end is not read to its end', async () => {
  let sent = 0
  const endless = () =>
    new ReadableStream({
      pull(controller) {
        sent += 2 ** 20
        controller.enqueue(new Uint8Array(2 ** 20))
      },
    })
  await using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(endless()) })
  const target = { baseUrl: `http://127.0.0.1:${server.port}/v1`, key, readOnly: true }
  await expect(conform(target)).rejects.toThrow(/^Cannot reach .* at most 16 MiB/)
  expect(sent).toBeLessThan(2 ** 26)
})

test('a server that answers slowly does not hold up the run for more than 300 s', async () => {
  const now = performance.now.bind(performance)
  let lateMs = 0
  using _ = spyOn(performance, 'now').mockImplementation(() => now() + lateMs)
  using server = startWrongServer((asked, respond) => {
    // The time of the tenth answer.
    if (server.methods.length === 10) lateMs = 300_000
    return respond(asked)
  })
  const results = await conform({ baseUrl: server.url, key, readOnly: false })
  const findings = results.map(({ finding }) => finding)
  expect(findings).toContainEqual(expect.objectContaining({ expected: 'the run to end within 300 s' }))
  expect(server.methods).toHaveLength(10)
})
