import { expect, test } from 'bun:test'
import { Probe, prerequisites } from '../../src/conform/exchange.ts'
import { checks, conform } from '../../src/conform/run.ts'
import { int64Max } from '../../src/int64.ts'
import { startService } from '../support/service.ts'
import {
  type Asked,
  answering,
  error,
  jsonOf,
  key,
  passTo,
  type Reply,
  startWrongServer,
  type Wrongness,
} from '../support/wrong-server.ts'

type JsonObject = Readonly<Record<string, unknown>>

const changedList = (change: (pets: readonly JsonObject[], asked: Asked) => unknown): Wrongness => ({
  say: (reply, asked) => (Array.isArray(reply.body) ? { ...reply, body: change(reply.body, asked) } : reply),
})
/** Changes every animal of a list. */
const listing = (change: (pet: JsonObject) => unknown) => changedList(pets => pets.map(change))
/** Responds with an Error of this status to the requests that match. */
const refusing = (status: number, when: (asked: Asked) => boolean): Wrongness => ({
  instead: asked => (when(asked) ? error(status) : undefined),
})
const withKey = (asked: Asked) => ({ ...asked, headers: new Headers({ authorization: `Bearer ${key}` }) })
/** Accepts requests without a key, or with a wrong one. */
const trusting = (method: string, path: RegExp, authorization: RegExp): Wrongness => ({
  hear: asked => {
    const sent = asked.headers.get('authorization') ?? 'none'
    return asked.method === method && path.test(asked.path) && authorization.test(sent) ? withKey(asked) : asked
  },
})
/** Accepts a body that matches as a valid animal. */
const taking = (body: RegExp): Wrongness => ({
  hear: asked =>
    asked.method === 'POST' && body.test(asked.body) ? { ...asked, body: '{"name":"Rex","categoryId":1}' } : asked,
})
const adding = (headers: Readonly<Record<string, string>>, when = (_: Reply) => true): Wrongness => ({
  say: reply => (when(reply) ? { ...reply, headers: { ...reply.headers, ...headers } } : reply),
})
/** The same request with another query. */
const rewriting = (change: (query: URLSearchParams) => void): Wrongness => ({
  hear: asked => {
    const query = new URLSearchParams(asked.query)
    change(query)
    return { ...asked, query }
  },
})

const list = /^\/pets$/
const one = /^\/pets\/./
const [none, wrong] = [/^none$/, /wrong/]
const posts = (body: RegExp) => refusing(400, asked => asked.method === 'POST' && body.test(asked.body))
const having = (status: number, change: JsonObject) => answering(status, body => ({ ...body, ...change }))
const withEach = (change: (pet: JsonObject) => JsonObject) => listing(pet => ({ ...pet, ...change(pet) }))
const everyId: Wrongness = { instead: ({ path }) => (/\d{15}/.test(path) ? { status: 200, body: {} } : undefined) }
const filtersWithLimit = (limit: number) =>
  rewriting(query => query.has('status') && !query.has('limit') && query.set('limit', String(limit)))
const withoutFilter = rewriting(query => query.delete('status'))
const rounded = (pet: JsonObject) => ({ ...pet, categoryId: BigInt(Number(pet['categoryId'])) })
const trimmed = (pet: JsonObject) => ({ ...pet, name: String(pet['name']).trim() })
const typed = (isWrong: (status: number) => boolean, type: string): Wrongness => ({
  contentType: ({ status }) => (isWrong(status) ? type : 'application/json'),
})

const withType = (form: RegExp) => refusing(415, ({ headers }) => form.test(headers.get('content-type') ?? 'none'))
const puts = refusing(405, ({ method }) => method === 'PUT')
const larger = (bytes: number) => refusing(413, ({ body }) => body.length >= bytes)
const allowing = (Allow: string): Wrongness => ({
  instead: ({ method }) => (method === 'GET' ? undefined : { ...error(405), headers: { Allow } }),
})
const at = (path: string, status: number, body: unknown): Wrongness => ({
  instead: asked => (asked.path === path ? { status, body } : undefined),
})
const only = (status: number, headers: Readonly<Record<string, string>>) =>
  adding(headers, reply => reply.status === status)
const linked = { Link: '</d>; rel="deprecation", </v1/pets?status=sold>; rel=successor-version' }
/** Every list has a link to the same page. */
const endless = adding({ Link: '</v1/pets?limit=1&cursor=abc>; rel="next"' })
const reversed = changedList(pets => pets.toReversed())

const firstKeyOnly: Wrongness = {
  hear: asked => (asked.headers.get('authorization')?.startsWith(`Bearer ${key} `) ? withKey(asked) : asked),
}
/** HEAD lacks a header that GET has. */
const headWithout: Wrongness = {
  hear: asked => ({ ...asked, method: 'GET', headers: new Headers([...asked.headers, ['x-method', asked.method]]) }),
  say: (reply, { headers }) => (headers.get('x-method') === 'HEAD' ? reply : { ...reply, headers: { 'x-more': '1' } }),
}

/** A server with all of these defects. */
function together(...defects: readonly Wrongness[]): Wrongness {
  const { contentType } = Object.assign({}, ...defects)
  return {
    hear: asked => defects.reduce((sofar, { hear }) => hear?.(sofar) ?? sofar, asked),
    instead: asked => defects.map(({ instead }) => instead?.(asked)).find(reply => reply !== undefined),
    say: (reply, asked) => defects.reduce((sofar, { say }) => say?.(sofar, asked) ?? sofar, reply),
    ...(contentType && { contentType }),
  }
}

/** A part of a check's name, a part of its finding, and the server's defect. */
const rows: readonly (readonly [check: string, found: string, wrongness: Wrongness])[] = [
  ['the base address ends in /v1', '/api', { prefix: '/api' }],
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
  ['two new animals get different ids', 'id 7 for two', having(201, { id: 7n })],
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
  ['the id of every listed animal is an int64', 'the id "25"', withEach(({ id }) => ({ id: String(id) }))],
  ['the name of every listed animal is a string', 'null', withEach(() => ({ name: null }))],
  ['the categoryId of every listed animal', 'the categoryId 1.5', withEach(() => ({ categoryId: 1.5 }))],
  ['the status of every listed animal', 'SOLD', withEach(() => ({ status: 'SOLD' }))],
  ['no two listed animals have the same id', 'id 1 twice', withEach(() => ({ id: 1n }))],
  ['GET /pets without a limit', 'lists 25', rewriting(query => query.has('limit') || query.set('limit', '100'))],
  ['GET /pets?status without a limit', 'status=available lists 21', filtersWithLimit(100)],
  ['GET /pets?limit accepts', 'limit=1 lists 20', rewriting(query => query.delete('limit'))],
  ['GET /pets?status lists only', 'status=available lists id 25 with the status pending', withoutFilter],
  ['limit and status together', 'lists 8', rewriting(query => query.has('status') && query.delete('limit'))],
  ['in the list of its status', 'returned 200 []', changedList((pets, { query }) => (query.has('status') ? [] : pets))],

  ['as it was added or listed', 'the categoryId 9223372036854775808', answering(200, rounded)],
  ['GET /pets/{petId} with the id of no animal is refused', 'returned 200', everyId],

  ['responses are application/json', 'text/html', typed(status => status === 200, 'text/html')],
  ['errors are application/json', 'problem+json', typed(status => status >= 400, 'application/problem+json')],
  ['the code of every Error is a string', 'the code 404', having(404, { code: 404n })],
  ['the message of every Error is a string', 'no message', answering(401, ({ message: _, ...body }) => body)],
  ['the status of every Error', 'the status 500', having(400, { status: 500n })],

  ['a request without a key', 'Basic', adding({ 'WWW-Authenticate': 'Basic' })],
  ['a request with a wrong key', 'Bearer realm="petstore"', adding({ 'WWW-Authenticate': 'Bearer realm="petstore"' })],
  ['a request with two keys is 401', '200', firstKeyOnly],

  ['GET of an unknown path is 404', '400', refusing(400, ({ path }) => path.startsWith('/conform'))],
  ['PUT /pets without a key is 401', '405', puts],
  ['PUT of an unknown path is 404', '405', puts],
  ['POST /pets with invalid JSON and without a key is 401', '400', posts(/^\{"name":$/)],
  ['POST /pets with more than 64 KiB of text/plain is 415', '413', larger(65_537)],
  ['PUT /pets is 405, and Allow lists GET, HEAD and POST', 'GET, POST', allowing('GET, POST')],
  ['POST /pets/{petId} is 405, and Allow lists GET and HEAD', 'GET, HEAD, POST', allowing('GET, HEAD, POST')],
  ['HEAD has the headers of GET and no body', 'no x-more', headWithout],
  ['GET /store/orders is 404', '200', at('/store/orders', 200, [])],

  ['a Content-Type may have parameters', '415', withType(/;/)],
  ['a body without a Content-Type is read as JSON', '415', withType(/^none$/)],
  ['POST /pets with an empty body of text/plain is 400', '415', withType(/text\/plain/)],
  ['POST /pets with an empty object in 64 KiB is 400', '413', larger(65_536)],
  ['responses are JSON for any Accept header', 'text/html', { contentType: () => 'text/html' }],
  ['Location is the address of the new animal', '/v1/pets/0', adding({ Location: '/v1/pets/0' })],
  ['a higher id than earlier ones', '"id":-2', answering(201, pet => ({ ...pet, id: -BigInt(Number(pet['id'])) }))],

  ['most of them surrogate pairs', '400', posts(/🐕{900}/u)],
  ['outer spaces and combining characters', '"conform', answering(201, trimmed)],
  ['a categoryId may be -9223372036854775808', '400', posts(/"categoryId":-/)],
  ['unknown properties are ignored', '"id":-7', at('/pets', 201, { id: -7n, name: 'Rex', categoryId: 1n })],
  ['strict handling, an unknown property', 'no Preference-Applied', having(400, { message: 'colour' })],
  ['an unknown parameter is ignored', '400', refusing(400, ({ query }) => query.has('colour'))],
  ['three problems', '"name"', having(400, { message: 'name' })],

  ['two problems', 'limit is 0', at('/pets', 400, { code: 'bad', message: 'limit is 0', status: 400n })],
  ['text that is not an int64', '/pets/1.5 returned 400', refusing(400, ({ path }) => path === '/pets/1.5')],

  ['the next link has limit, status and a cursor', '/pets?limit=1&cursor=abc', endless],
  ['X-Next-Cursor is the cursor', 'returned no X-Next-Cursor', endless],
  ['following the next links', 'cursor=abc lists 25 again', together(endless, reversed)],
  ['GET /pets with a changed cursor is 400', 'cursor=abA returned 200', endless],
  ['GET /pets with the cursor of another status is 400', 'status=sold&cursor=abc returned 200', endless],

  ['X-Request-Id is the one', 'always-mine', adding({ 'X-Request-Id': 'always-mine' })],
  ['X-Request-Id is new', 'always-mine', adding({ 'X-Request-Id': 'always-mine' })],
  ['Cache-Control: no-store', 'no-cache', adding({ 'Cache-Control': 'no-cache' })],
  ['X-Content-Type-Options: nosniff', 'no X-Content', only(200, { 'X-Content-Type-Options': 'nosniff' })],
  ['a 405, a 413 and a 415', 'the status 500', { ...puts, ...having(405, { status: 500n }) }],
  ['an Error has no other fields', 'hint', having(401, { hint: 'Log in' })],
  ['the Deprecation header, also on 404', 'no Deprecation', only(200, { Deprecation: '@1794700800' })],
  ['the Sunset header, also on 404', '2031', adding({ Sunset: 'Fri, 05 Dec 2031 00:00:00 GMT' })],
  ['links to its documentation', 'status=sold', adding(linked)],
  ['/openapi.json', '{}', at('../openapi.json', 200, {})],

  ['repeated with its Idempotency-Key', 'no Idempotency-Replayed', having(201, { id: 7n })],
  ['a creation that failed', '201', only(201, { 'Idempotency-Replayed': 'true' })],
]

test('a server that decided otherwise passes the contract, and fails each decision that has no row', async () => {
  using server = startWrongServer()
  const results = await conform({ baseUrl: server.url, key: server.key, readOnly: false }, { strict: true })
  const outcomes = (names: typeof results) => names.map(({ check: { name }, finding }) => [name, finding.outcome])
  const contract = results.filter(({ check }) => check.rule === 'contract')
  expect(outcomes(contract)).toEqual(contract.map(({ check }) => [check.name, 'passed']))
  // The check of refusals judges those that other checks have met.
  const tested = [...rows.map(([part]) => part), prerequisites.refusals]
  const others = results.filter(({ check: { name } }) => !tested.some(part => name.includes(part)))
  expect(outcomes(others)).toEqual(others.map(({ check }) => [check.name, 'failed']))
  expect(tested.length + others.length).toBe(checks.length)
})

test('a server receives only GET and HEAD from a run that only reads', async () => {
  using server = startWrongServer()
  const results = await conform({ baseUrl: server.url, key: server.key, readOnly: true }, { strict: true })
  expect(new Set(server.methods)).toEqual(new Set(['GET', 'HEAD']))
  const failed = results.filter(({ check, finding }) => check.rule === 'contract' && finding.outcome === 'failed')
  expect(failed).toEqual([])
})

/** The failures of a whole run against a server, as text: name, what was expected, what was found. */
async function failuresOf(server: { readonly url: string; readonly key: string }, strict: boolean): Promise<string[]> {
  const results = await conform({ baseUrl: server.url, key: server.key, readOnly: false }, { strict })
  return results.flatMap(({ check: { name }, finding }) =>
    finding.outcome === 'failed' ? [`${name}: expected ${finding.expected}, found ${finding.found}`] : [],
  )
}

test.each(rows)('a server that breaks a rule fails its check: %s', async (part, found, wrongness) => {
  using server = startWrongServer(wrongness)
  const probe = new Probe({ baseUrl: server.url, key: server.key, readOnly: false })
  const finding = await checks.find(({ name }) => name.includes(part))?.run(probe)
  const failed = { outcome: 'failed', expected: expect.stringMatching(/./), found: expect.stringContaining(found) }
  expect(finding).toEqual(failed as never)
})

const contractRows = rows.filter(([part]) => checks.find(({ name }) => name.includes(part))?.rule === 'contract')

test.each(contractRows)('one defect gives few failures: %s', async (part, _, wrongness) => {
  using server = startWrongServer(wrongness)
  const failures = await failuresOf(server, false)
  expect(failures.filter(failure => failure.includes(part))).toHaveLength(1)
  expect(failures.slice(3)).toEqual([])
})

/** As a server in JavaScript does that reads and writes JSON as it comes. */
const doubles = (value: unknown): unknown => JSON.parse(jsonOf(value))
const roundedIntegers: Wrongness = {
  ...taking(/9223372036854775808(?!\d)/),
  say: reply => ({ ...reply, body: reply.body === undefined ? undefined : doubles(reply.body) }),
}
const defaultLimit25 = rewriting(query => query.has('limit') || query.set('limit', '25'))
const wrongStatusIn404 = having(404, { status: 400n })
const allThree = together(defaultLimit25, roundedIntegers, wrongStatusIn404)
const always422: Wrongness = {
  say: reply =>
    reply.status === 400 ? { ...reply, status: 422, body: { ...Object(reply.body), status: 422n } } : reply,
}
const namingRounded =
  /^POST .* 2\^53 exactly: expected categoryId: 9007199254740993, found .* categoryId 9007199254740992/
const namingLimit = /^GET \/pets without a limit lists at most 20 animals: expected at most 20 .* lists 2\d$/
const naming422 = /^requests are refused .*422 instead of 400: POST \/pets without a name, .*, .* not JSON$/
const namingStatus = /^the status of every Error is the HTTP status: .* returned 404 with the status 400$/

test.each([
  ['rounded integers', roundedIntegers, [namingRounded], 2],
  ['a default limit of 25', defaultLimit25, [namingLimit], 1],
  ['a wrong status in the body of 404', wrongStatusIn404, [namingStatus], 1],
  ['all three', allThree, [namingRounded, namingLimit, namingStatus], 4],
  ['422 instead of 400', always422, [naming422], 1],
])('our service with %s fails few checks, and they name it', async (_, wrongness, names, max) => {
  for (const animals of [0, 30]) {
    await using service = await startService()
    for (let index = 0; index < animals; index++) {
      await service.stores.pets.create({ name: `Rex ${index}`, categoryId: int64Max })
    }
    using server = startWrongServer(wrongness, passTo(`${service.origin}/v1`, service.key))
    for (const strict of [false, true]) {
      const failures = await failuresOf(server, strict)
      expect(failures.slice(max)).toEqual([])
      expect(names.filter(name => !failures.some(failure => name.test(failure)))).toEqual([])
    }
  }
})

test('a check that needs what another check reports is skipped, and names that check', async () => {
  using server = startWrongServer(changedList(pets => ({ pets })))
  const results = await conform({ baseUrl: server.url, key: server.key, readOnly: false }, { strict: false })
  const { finding } = results.find(({ check }) => check.name.startsWith('no two listed')) ?? {}
  const why = 'depends on the failed check: GET /pets is 200 with a JSON array'
  expect(finding).toEqual({ outcome: 'skipped', why })
})

const getting = (change: JsonObject) => having(200, change)
const upper = (pet: JsonObject) => ({ ...pet, name: String(pet['name']).toUpperCase() })
const ascii = (pet: JsonObject) => ({ ...pet, name: String(pet['name']).replace(/[^ -~]/g, '?') })
const maxAs0 = (pet: JsonObject) => (pet['categoryId'] === int64Max ? { ...pet, categoryId: 0n } : pet)
const nullWithoutStatus: Wrongness = {
  say: (reply, { body }) =>
    reply.status === 201 && !body.includes('status')
      ? { ...reply, body: { ...Object(reply.body), status: null } }
      : reply,
}
const text401 = [answering(401, () => 'no'), typed(status => status === 401, 'text/plain')]
const renamed = withEach(() => ({ name: 'X' }))
const refusing422 = (body: RegExp) => refusing(422, asked => asked.method === 'POST' && body.test(asked.body))
const [byGet, byList] = [/^GET \/pets\/\{petId\} returns/, /^a new animal is in the list/]

/** The defects of a server, and the failures of a whole run. */
const runs: readonly (readonly [server: string, defects: readonly Wrongness[], failures: readonly RegExp[]])[] = [
  ['rounds in POST, renames in GET', [answering(201, rounded), getting({ name: 'X' })], [/2\^53/, byGet]],
  ['shouts in POST, renames in GET', [answering(201, upper), getting({ name: 'X' })], [/as sent/, byGet]],
  [
    'omits the status in POST, renames in lists',
    [having(201, { status: undefined }), renamed],
    [/each status/, byList],
  ],
  ['has text in 401 and a wrong status in 404', [...text401, wrongStatusIn404], [/^errors are/, namingStatus]],
  ['has a 201 of text/html', [typed(status => status === 201, 'text/html')], [/^responses are .* POST .* text\/html/]],
  ['loses characters when it reads', [answering(200, ascii), listing(ascii)], [byGet, byList]],
  ['reads the largest integer as 0', [answering(200, maxAs0), listing(maxAs0)], [byGet, byList]],
  ['returns the status null', [nullWithoutStatus], [/without a status: .* the status null/]],
  [
    'has 422 for two problems',
    [refusing422(/"lost"/), refusing422(/^name=/)],
    [/422 .*: .* unknown status, .* not JSON$/],
  ],
]

test.each(runs)('a server that %s fails a check for each defect', async (_, defects, failures) => {
  using server = startWrongServer(together(...defects))
  expect(await failuresOf(server, false)).toEqual(failures.map(form => expect.stringMatching(form)))
})

test('animals that a server accepted by mistake fail no other check, also after it is fixed', async () => {
  const accepted: JsonObject[] = []
  const mistakes = { isFixed: false }
  const invalid = /"name":42|"lost"|"categoryId":9223372036854775808/
  using server = startWrongServer({
    instead: ({ method, body }) => {
      if (method !== 'POST' || mistakes.isFixed || !invalid.test(body)) return undefined
      accepted.push({ id: BigInt(1_000 + accepted.length), ...JSON.parse(body) })
      return { status: 201, body: accepted.at(-1) }
    },
    ...changedList((pets, { query }) =>
      query.get('limit') === '100' && query.size === 1 ? [...accepted, ...pets] : pets,
    ),
  })
  expect(await failuresOf(server, false)).toHaveLength(3)
  expect(accepted.length).toBeGreaterThan(2)
  mistakes.isFixed = true
  expect(await failuresOf(server, false)).toEqual([])
})

test('a name is read as it was sent, with its outer spaces', async () => {
  await using service = await startService()
  using server = startWrongServer(
    answering(200, body => (body?.['name'] ? trimmed(body) : body)),
    passTo(`${service.origin}/v1`, service.key),
  )
  expect(await failuresOf(server, true)).toEqual([
    expect.stringMatching(/with outer spaces .* GET .* the name "conform/),
  ])
})

test('every check that others rely on exists', () => {
  const names = checks.map(({ name }) => name)
  expect(Object.values<string>(prerequisites).filter(name => !names.includes(name))).toEqual([])
})

test('an Error check reports every kind of error that is wrong', async () => {
  using server = startWrongServer({ say: reply => (reply.status < 400 ? reply : { ...reply, body: { status: 1n } }) })
  const [failure = ''] = (await failuresOf(server, false)).filter(text => text.startsWith('the status of every Error'))
  for (const status of [400, 401, 404]) expect(failure).toContain(`returned ${status} with the status 1`)
})
