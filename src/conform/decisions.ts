import { int64Max, int64Min, isJsonObject } from '../int64.ts'
import type { Pet } from '../pet.ts'
import { absentId, type Check, newPet, type Probe, petName, post, rules, wrongCredential } from './check.ts'
import { type Exchange, fail, skip } from './exchange.ts'

const document = rules('decision', 'The interface')
const base = rules('decision', 'Base address')
const authentication = rules('decision', 'Authentication')
const resources = rules('decision', 'Resources')
const operations = rules('decision', 'Operations')
const listPets = rules('decision', 'listPets')
const createPet = rules('decision', 'createPet')
const getPet = rules('decision', 'getPet')
const paging = rules('decision', 'Paging')
const order = rules('decision', 'The order in which a request is judged')
const errors = rules('decision', 'Errors')
const headers = rules('decision', 'Headers')
const strictHandling = rules('decision', 'Strict handling')
const retrying = rules('decision', 'Retrying a creation')
const absent = rules('decision', 'What does not exist')

const noKey = { authorization: null }

const credentialChecks: readonly Check[] = [
  ...[
    { what: 'without a key', authorization: null },
    { what: 'with another scheme', authorization: 'Basic Y29uZm9ybTo=' },
    { what: 'with a scheme and no key', authorization: 'Bearer' },
  ].map(({ what, authorization }) =>
    authentication.reads(`a request ${what} gets WWW-Authenticate without an error`, async probe => {
      const refused = await probe.send({ path: '/pets', authorization })
      refused.error(401)
      refused.header('WWW-Authenticate', 'Bearer realm="petstore"')
    }),
  ),
  authentication.reads('a request with a wrong key gets WWW-Authenticate with invalid_token', async probe => {
    const refused = await probe.send({ path: '/pets', authorization: wrongCredential })
    refused.error(401)
    const form = /^Bearer realm="petstore", error="invalid_token", error_description="[^"]+"$/
    const expected = 'Bearer realm="petstore", error="invalid_token", error_description="…"'
    refused.header('WWW-Authenticate', form, expected)
  }),
  authentication.reads('the scheme Bearer may be in any case', async probe => {
    for (const scheme of ['bearer', 'BEARER']) {
      const response = await probe.send({ path: '/pets', authorization: `${scheme} ${probe.key}` })
      response.expectStatus(200)
    }
  }),
  authentication.reads('a request with two keys is 401', async probe => {
    const refused = await probe.send({ path: '/pets', authorization: `Bearer ${probe.key} ${probe.key}` })
    refused.error(401)
  }),
]

const unknown = '/conform-nothing-is-here'
const invalidJson = '{"name":'
const asText = { headers: { 'Content-Type': 'text/plain' } }
const bodyBytesMax = 64 * 1024
const tooLarge = '{}'.padEnd(bodyBytesMax + 1)

const orderChecks: readonly Check[] = [
  order.refuses('GET of an unknown path without a key', 401, [{ path: unknown, ...noKey }]),
  order.refuses('GET of an unknown path', 404, [{ path: unknown }]),
  order.refuses('PUT /pets without a key', 401, [{ path: '/pets', method: 'PUT', ...noKey }]),
  order.refuses('PUT of an unknown path', 404, [{ path: unknown, method: 'PUT' }]),
  order.refuses('POST /pets with invalid JSON and without a key', 401, [post(invalidJson, noKey)]),
  order.refuses('POST /pets with invalid JSON as text/plain', 415, [post(invalidJson, asText)]),
  order.refuses('POST /pets with more than 64 KiB of text/plain', 415, [post(tooLarge, asText)]),
  operations.writes('PUT /pets is 405, and Allow lists GET, HEAD and POST', async probe => {
    expectAllow(await probe.send(post(newPet(), { method: 'PUT' })), 'GET', 'HEAD', 'POST')
  }),
  operations.writes('POST /pets/{petId} is 405, and Allow lists GET and HEAD', async probe => {
    expectAllow(await probe.send(post(newPet(), { path: `/pets/${absentId()}` })), 'GET', 'HEAD')
  }),
  operations.reads('HEAD /pets has the headers of GET and no body', async probe => {
    await probe.anyPet()
    await expectHeadLikeGet(probe, '/pets?limit=1')
  }),
  operations.reads('HEAD /pets/{petId} has the headers of GET and no body', async probe => {
    await expectHeadLikeGet(probe, `/pets/${(await probe.anyPet()).id}`)
  }),
  absent.refuses('GET /store/orders', 404, [{ path: '/store/orders' }]),
]

function expectAllow(refused: Exchange, ...methods: string[]): void {
  refused.error(405)
  const allow = refused.header('Allow', /./, methods.join(', '))
  const listed = allow.split(',').map(method => method.trim())
  refused.expect(listed.toSorted().join() === methods.join(), `Allow: ${methods.join(', ')}`, `returned ${allow}`)
}

/** Headers of one response or one connection. */
const volatile = /^(date|x-request-id|content-length|transfer-encoding|connection|keep-alive|ratelimit)$/

async function expectHeadLikeGet(probe: Probe, path: string): Promise<void> {
  const get = await probe.send(path)
  const head = await probe.send({ path, method: 'HEAD' })
  head.expectStatus(get.status)
  head.expect(head.text === '', 'no body')
  for (const [name, value] of get.headers) if (!volatile.test(name)) head.header(name, value)
}

const bodyChecks: readonly Check[] = [
  createPet.writes('a Content-Type may have parameters', async probe => {
    const type = { 'Content-Type': 'application/json; charset=utf-8' }
    const response = await probe.send(post(newPet(), { headers: type }))
    response.pet(201)
  }),
  createPet.writes('a body without a Content-Type is read as JSON', async probe => {
    // Bytes, because fetch adds a Content-Type to a string.
    const body = new TextEncoder().encode(newPet())
    const response = await probe.send({ path: '/pets', method: 'POST', body })
    response.pet(201)
  }),
  createPet.refuses('POST /pets with another media type', 415, [
    post(newPet(), asText),
    post(newPet(), { headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }),
  ]),
  createPet.refuses('POST /pets with a Content-Encoding', 415, [
    post(newPet(), { headers: { 'Content-Encoding': 'gzip' } }),
  ]),
  createPet.refuses('POST /pets with an empty body of text/plain', 400, [post('', asText)]),
  createPet.refuses('POST /pets with an empty object in 64 KiB', 400, [post('{}'.padEnd(bodyBytesMax))]),
  createPet.refuses('POST /pets with more than 64 KiB', 413, [post(tooLarge)]),
  base.refuses('POST /pets with a body that is not UTF-8', 400, [
    post(Uint8Array.from(Buffer.from(newPet({ name: '"conform Ren\u00e9"' }), 'latin1'))),
  ]),
  base.reads('responses are JSON for any Accept header', async probe => {
    const response = await probe.send({ path: '/pets?limit=1', headers: { Accept: 'text/html' } })
    response.expectJsonType()
  }),
  createPet.writes('Location is the address of the new animal', async probe => {
    const created = await probe.create()
    const end = `/pets/${created.pet(201).id}`
    created.header('Location', new RegExp(`^(https?:/)?/.*${end}$`), `an address that ends in ${end}`)
  }),
  createPet.writes('a new animal gets a higher id than earlier ones', async probe => {
    const before = await probe.addPet()
    const created = await probe.create()
    created.expect(created.pet(201).id > before.id, `an id above ${before.id}`)
  }),
]

const nameCharsMax = 1_000
const strict = { headers: { Prefer: 'handling=strict' } }

const fieldChecks: readonly Check[] = [
  ...[
    ['an empty name', ''],
    ['a name of white space', ' \t\n\u00a0'],
    ['a name of more than 1,000 characters', 'conform '.padEnd(nameCharsMax + 1, 'x')],
    ['a name with U+0000', 'conform \0'],
    ['a name with an unpaired surrogate', 'conform \ud800'],
  ].map(([what, name]) =>
    resources.refuses(`POST /pets with ${what}`, 400, [post(newPet({ name: JSON.stringify(name) }))], 'name'),
  ),
  ...[
    ['of 1,000 characters, most of them surrogate pairs,', `conform ${'🐕'.repeat(nameCharsMax - 8)}`],
    ['with outer spaces and combining characters', `  ${petName()} e\u0301 \u00e9 `],
  ].map(([what, name]) =>
    resources.writes(`a name ${what} is stored exactly`, async probe => {
      const created = await probe.create({ name: JSON.stringify(name) })
      created.expect(created.pet(201).name === name, 'the name as sent')
    }),
  ),
  ...[
    { sent: '1.50e2', categoryId: 150n },
    { sent: String(int64Min), categoryId: int64Min },
  ].map(({ sent, categoryId }) =>
    resources.writes(`a categoryId may be ${sent}`, async probe => {
      const created = await probe.create({ categoryId: sent })
      created.expect(created.pet(201).categoryId === categoryId, `the categoryId ${categoryId}`)
    }),
  ),
  resources.writes('an animal added without a status has none', async probe => {
    const created = await probe.create()
    created.expect(created.pet(201).status === undefined, 'an animal without a status')
  }),
  resources.refuses('POST /pets with the status null', 400, [post(newPet({ status: 'null' }))], 'status'),
  strictHandling.writes('unknown properties are ignored, including id', async probe => {
    const created = await probe.create({ id: '-7', colour: '"red"' })
    created.expect(created.pet(201).id !== -7n, 'an id that the server assigned')
    created.expect(!Object.hasOwn(Object(created.json()), 'colour'), 'an animal without a colour')
  }),
  strictHandling.writes('with strict handling, an unknown property is 400 and named', async probe => {
    expectStrict(await probe.send(post(newPet({ colour: '"red"' }), strict)))
  }),
  strictHandling.reads('an unknown parameter is ignored', async probe => {
    const response = await probe.send('/pets?limit=1&colour=red')
    response.expectStatus(200)
  }),
  strictHandling.reads('with strict handling, an unknown parameter is 400 and named', async probe => {
    expectStrict(await probe.send({ path: '/pets?limit=1&colour=red', ...strict }))
  }),
  order.writes('the error for a NewPet with three problems names them all', async probe => {
    const refused = await probe.send(post(newPet({ name: '7', categoryId: undefined, status: '"lost"' })))
    refused.error(400, 'name', 'categoryId', 'status')
  }),
]

function expectStrict(refused: Exchange): void {
  refused.error(400, 'colour')
  refused.header('Preference-Applied', 'handling=strict')
}

/** One check for each row. */
const invalidQueries: readonly (readonly [what: string, name: string, ...queries: string[]])[] = [
  ['a limit below 1', 'limit', 'limit=0', 'limit=-1'],
  ['a limit above 100', 'limit', 'limit=101', 'limit=9223372036854775808'],
  ['a limit that is not an integer', 'limit', 'limit=abc', 'limit=1.5', 'limit=0x10'],
  ['an empty limit', 'limit', 'limit='],
  ['a repeated limit', 'limit', 'limit=1&limit=1'],
  ['an unknown status', 'status', 'status=lost', 'status=Sold'],
  ['an empty status', 'status', 'status='],
  ['a repeated status', 'status', 'status=sold&status=sold'],
]

const parameterChecks: readonly Check[] = [
  ...invalidQueries.map(([what, name, ...queries]) => {
    const requests = queries.map(query => ({ path: `/pets?${query}` }))
    return listPets.refuses(`GET /pets with ${what}`, 400, requests, name)
  }),
  order.reads('the error for a query with two problems names both', async probe => {
    const refused = await probe.send('/pets?limit=0&status=lost')
    refused.error(400, 'limit', 'status')
  }),
  getPet.refuses('GET /pets/{petId} with text that is not an int64', 404, [
    { path: '/pets/abc' },
    { path: '/pets/1.5' },
    { path: `/pets/${int64Max + 1n}` },
  ]),
]

const walkLimit = 10
const walkPagesMax = 30

const pagingChecks: readonly Check[] = [
  paging.reads('the list is in ascending order of id', async probe => {
    await probe.ensurePets(2)
    const list = await probe.send('/pets?limit=100')
    expectAscending(list.pets(), list)
  }),
  paging.reads('Link leads to the next page while more animals follow', async probe => {
    await probe.ensurePets(2)
    const first = await probe.send('/pets?limit=1')
    const second = await probe.send(expectNext(first))
    expectAscending([...first.pets(), ...second.pets()], second)
  }),
  paging.reads('the next link has limit, status and a cursor', async probe => {
    await probe.ensurePets(2, 'sold')
    const next = expectNext(await probe.send('/pets?limit=1&status=sold'))
    const { limit, status, cursor } = Object.fromEntries(queryOf(next))
    if (limit !== '1' || status !== 'sold' || !cursor) fail('limit=1, status=sold and a cursor', next)
  }),
  paging.reads('following the next links lists every animal once, and ends', async probe => {
    await probe.ensurePets(walkLimit + 1)
    let path: string | undefined = `/pets?limit=${walkLimit}`
    const listed: Pet[] = []
    for (let pages = 0; path !== undefined; pages++) {
      if (pages === walkPagesMax) skip(`the catalogue has more than ${walkPagesMax} pages of ${walkLimit}`)
      const list: Exchange = await probe.send(path)
      listed.push(...list.pets())
      expectAscending(listed, list)
      path = list.nextPath()
    }
    if (listed.length <= walkLimit) fail(`more than ${walkLimit} animals in all`, `${listed.length}`)
  }),
  paging.refuses('GET /pets with an unknown cursor', 400, [{ path: '/pets?cursor=conform' }]),
  paging.reads('GET /pets with a changed cursor is 400', async probe => {
    const cursor = await someCursor(probe)
    const changed = cursor.slice(0, -1) + (cursor.endsWith('A') ? 'B' : 'A')
    const refused = await probe.send(`/pets?limit=1&cursor=${encodeURIComponent(changed)}`)
    refused.error(400)
  }),
  paging.reads('GET /pets with the cursor of another status is 400', async probe => {
    const cursor = await someCursor(probe)
    const refused = await probe.send(`/pets?limit=1&status=sold&cursor=${encodeURIComponent(cursor)}`)
    refused.error(400)
  }),
]

function expectAscending(pets: readonly Pet[], list: Exchange): void {
  for (const [index, { id }] of pets.entries()) {
    const before = pets[index - 1]?.id
    list.expect(before === undefined || id > before, 'ascending ids', `lists ${id} after ${before}`)
  }
}

function expectNext(list: Exchange): string {
  const found = `returned Link: ${list.headers.get('link') ?? 'none'}`
  return list.nextPath() ?? list.fail('a Link with rel="next"', found)
}

/** Of a list without a status. */
async function someCursor(probe: Probe): Promise<string> {
  await probe.ensurePets(2)
  const next = expectNext(await probe.send('/pets?limit=1'))
  return queryOf(next).get('cursor') || fail('a cursor in the next link', next)
}

function queryOf(path: string): URLSearchParams {
  return new URLSearchParams(path.slice(path.indexOf('?')))
}

const headerChecks: readonly Check[] = [
  headers.reads('X-Request-Id is the one that the client sent', async probe => {
    const id = `conform-${crypto.randomUUID()}`
    const response = await probe.send({ path: '/pets', headers: { 'X-Request-Id': id } })
    response.header('X-Request-Id', id)
  }),
  headers.reads('X-Request-Id is new if the client sent none or an unsafe one', async probe => {
    const seen = new Set<string>()
    for (const sent of [{}, {}, { 'X-Request-Id': '<conform>' }]) {
      const list = await probe.send({ path: '/pets', headers: sent })
      seen.add(list.header('X-Request-Id', /^[^<]+$/, 'a new id'))
    }
    if (seen.size !== 3) fail('a different X-Request-Id on every response', [...seen].join(', '))
  }),
  ...[
    ['Cache-Control', 'no-store'],
    ['X-Content-Type-Options', 'nosniff'],
  ].map(([name = '', value = '']) =>
    headers.reads(`every response has ${name}: ${value}`, async probe => {
      for (const path of ['/pets', unknown]) (await probe.send(path)).header(name, value)
      const response = await probe.send({ path: '/pets', ...noKey })
      response.header(name, value)
    }),
  ),
  errors.reads('an Error has no other fields', async probe => {
    const refused = await probe.send({ path: '/pets', ...noKey })
    refused.expect(Object.keys(refused.error(401)).length === 3, 'code, message and status')
  }),
  errors.reads('the code of an Error is in lower_snake_case', async probe => {
    for (const request of [{ path: '/pets', ...noKey }, { path: `/pets/${absentId()}` }]) {
      const refused = await probe.send(request)
      const { code } = refused.error(request.path === '/pets' ? 401 : 404)
      refused.expect(/^[a-z]+(_[a-z]+)*$/.test(String(code)), 'a code in lower_snake_case')
    }
  }),
  ...[
    ['Deprecation', '@1794700800'],
    ['Sunset', 'Thu, 05 Dec 2030 00:00:00 GMT'],
  ].flatMap(([name = '', value = '']) =>
    [200, 404].map(status =>
      getPet.reads(`GET /pets/{petId} has the ${name} header on ${status}`, async probe => {
        const got = await probe.send(`/pets/${status === 200 ? (await probe.anyPet()).id : absentId()}`)
        got.expectStatus(status)
        got.header(name, value)
      }),
    ),
  ),
  getPet.reads('GET /pets/{petId} links to its documentation and its successor', async probe => {
    const got = await probe.send(`/pets/${(await probe.anyPet()).id}`)
    const found = `returned Link: ${got.header('Link', /./, 'rel="deprecation" and rel="successor-version"')}`
    got.expect(got.link('deprecation') !== undefined, 'a link with rel="deprecation"', found)
    const successor = got.link('successor-version')?.href ?? ''
    const expected = 'a link to /pets?status=available with rel="successor-version"'
    got.expect(successor.endsWith('/pets?status=available'), expected, found)
  }),
  document.reads('/openapi.json, next to the base address, lists its servers', async probe => {
    // fetch resolves the dots.
    const openapi = await probe.send({ path: '/../openapi.json', ...noKey })
    openapi.expectStatus(200)
    const description = openapi.json()
    const servers = isJsonObject(description) ? description['servers'] : undefined
    openapi.expect(Array.isArray(servers) && servers.length > 0, 'an OpenAPI document with servers')
  }),
]

const idempotencyChecks: readonly Check[] = [
  retrying.writes('a creation repeated with its Idempotency-Key adds nothing', async probe => {
    const key = newKey()
    const second = await createTwice(probe, key, key)
    second.header('Idempotency-Replayed', 'true')
  }),
  retrying.writes('an Idempotency-Key is the same with and without quotes', async probe => {
    const key = newKey()
    await createTwice(probe, key, `"${key}"`)
  }),
  retrying.writes('an Idempotency-Key that was used for another animal is 422', async probe => {
    const key = newKey()
    const first = await probe.send(postWith(key))
    first.pet(201)
    const second = await probe.send(postWith(key))
    second.error(422)
  }),
  retrying.refuses('POST /pets with an Idempotency-Key of 256 characters', 400, [postWith('k'.repeat(256))]),
  retrying.writes('a creation that failed does not use up its Idempotency-Key', async probe => {
    const key = newKey()
    const refused = await probe.send(postWith(key, newPet({ name: undefined })))
    refused.error(400)
    const created = await probe.send(postWith(key))
    created.pet(201)
    created.expect(!created.headers.has('idempotency-replayed'), 'a new animal')
  }),
]

function newKey(): string {
  return `conform-${crypto.randomUUID()}`
}

function postWith(idempotencyKey: string, body = newPet()) {
  return post(body, { headers: { 'Idempotency-Key': idempotencyKey } })
}

/** Sends the same creation with both spellings of a key, and expects the same animal. */
async function createTwice(probe: Probe, firstKey: string, secondKey: string): Promise<Exchange> {
  const body = newPet()
  const { id } = (await probe.send(postWith(firstKey, body))).pet(201)
  const second = await probe.send(postWith(secondKey, body))
  second.expect(second.pet(201).id === id, `the animal with id ${id} again`)
  return second
}

export const decisionChecks: readonly Check[] = [
  ...credentialChecks,
  ...orderChecks,
  ...bodyChecks,
  ...fieldChecks,
  ...parameterChecks,
  ...pagingChecks,
  ...headerChecks,
  ...idempotencyChecks,
]
