import { expect, test } from 'bun:test'
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
const withEach = (change: (pet: JsonObject) => JsonObject) =>
  changedList(pets => pets.map(pet => ({ ...pet, ...change(pet) })))
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
const posts = (body: RegExp) =>
  changing((reply, asked) => (asked.method === 'POST' && body.test(asked.body) ? error(400) : reply))
const having = (status: number, change: JsonObject) => answering(status, body => ({ ...body, ...change }))
const everyId = changing((reply, { path }) => (/\d{15}/.test(path) ? { status: 200, body: {} } : reply))
const rounded = (pet: JsonObject) => ({ ...pet, categoryId: BigInt(Number(pet['categoryId'])) })
const problem = changing(reply => (reply.status >= 400 ? { ...reply, type: 'application/problem+json' } : reply))

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
  ['every listed animal is a Pet', 'the id "', withEach(({ id }) => ({ id: String(id) }))],
  ['every listed animal is a Pet', 'SOLD', withEach(() => ({ status: 'SOLD' }))],
  ['no two listed or new animals have the same id', 'id 1 twice', withEach(() => ({ id: 1n }))],
  ['no two listed or new animals have the same id', 'id 7 twice', having(201, { id: 7n })],
  ['GET /pets without a limit', '/pets lists 21', rewriting(query => query.has('limit') || query.set('limit', '21'))],
  ['GET /pets?limit accepts', 'limit=1 lists 20', rewriting(query => query.delete('limit'))],
  ['GET /pets?status lists only', 'with the status "sold"', rewriting(query => query.delete('status'))],
  ['in the list of its status', 'returned 200 []', changedList((pets, { query }) => (query.has('status') ? [] : pets))],

  ['as it was added or listed', 'the categoryId 9223372036854775808', answering(200, rounded)],
  ['GET /pets/{petId} with the id of no animal is refused', 'returned 200', everyId],

  ['responses are application/json', 'problem+json', problem],
  ['every error is an Error', 'the code 404', having(404, { code: 404n })],
  ['every error is an Error', 'the status 500', having(400, { status: 500n })],
]

/** The failures of a whole run, as text: name, what was expected, what was found. */
async function listFailures({ url, key }: ReturnType<typeof startWrongServer>): Promise<string[]> {
  const results = await Array.fromAsync(conform({ baseUrl: url, key, readOnly: false }))
  return results.flatMap(result =>
    result.outcome === 'failed' ? [`${result.name}: expected ${result.expected}, found ${result.found}`] : [],
  )
}

test('a server that decided otherwise passes the contract', async () => {
  using server = startWrongServer()
  expect(await listFailures(server)).toEqual([])
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

test('a redirect is not followed, so that the key stays with the given address', async () => {
  using other = startWrongServer()
  const fetch = () => Response.redirect(`${other.url}/pets`, 307)
  await using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
  const target = { baseUrl: `http://127.0.0.1:${server.port}/v1`, key, readOnly: false }
  const [first] = await Array.fromAsync(conform(target))
  expect(first).toMatchObject({ outcome: 'failed', found: expect.stringContaining('returned 307') })
  expect(other.methods).toEqual([])
})
