import { expect } from 'bun:test'
import { readLinks } from '../../src/client/headers.ts'
import {
  absentId,
  type Exchange,
  newPet,
  Probe,
  petName,
  post,
  postEach,
  type Sendable,
  wrongBearer,
} from '../../src/conform/check.ts'
import { bodyBytesMax, type ErrorCode, errorCodes } from '../../src/http/operations.ts'
import { int64Max, int64Min } from '../../src/int64.ts'

/** The decisions of ours that a server does not follow, each with the reason. */
export async function failedDecisions(baseUrl: string, key: string): Promise<readonly string[]> {
  const probe = new Probe({ baseUrl, key, readOnly: false })
  const failed: string[] = []
  for (const [name, check] of Object.entries(decisions)) {
    await check(probe).catch((error: unknown) => failed.push(`${name}: ${Bun.stripANSI(String(error))}`))
  }
  return failed
}

const asking = (authorization: string | null) => ({ path: '/pets', authorization })
const noKey = asking(null)
const unknown = '/conform-nothing-is-here'
const invalidJson = '{"name":'
const tooLarge = '{}'.padEnd(bodyBytesMax + 1)
const latin1 = Uint8Array.from(Buffer.from(newPet({ name: '"conform Ren\u00e9"' }), 'latin1'))
const longestName = `conform ${'🐕'.repeat(992)}`
const typed = (type: string) => ({ headers: { 'Content-Type': type } })
const asText = typed('text/plain')
const asForm = typed('application/x-www-form-urlencoded')
const gzipped = { headers: { 'Content-Encoding': 'gzip' } }
const strict = { headers: { Prefer: 'handling=strict' } }
const strictText = { path: '/pets?colour=red', headers: { ...strict.headers, ...asText.headers } }
const red = { colour: '"red"' }
const newKey = () => `conform-${crypto.randomUUID()}`
const postWith = (idempotencyKey: string, body = newPet()) =>
  post(body, { headers: { 'Idempotency-Key': idempotencyKey } })
const listEach = (...queries: readonly string[]) => queries.map(query => `/pets?${query}`)

/** The code of each request, if only that is decided. */
const refusals: Readonly<Record<string, readonly [ErrorCode, ...requests: readonly Sendable[]]>> = {
  'the key is checked before the path': ['missing_api_key', { ...noKey, path: unknown }],
  'the key is checked before the method': ['missing_api_key', { ...noKey, method: 'PUT' }],
  'the key is checked before the body': ['missing_api_key', post(invalidJson, noKey)],
  'the path is checked before the method': ['not_found', { path: unknown, method: 'PUT' }],
  'the method is checked before the body': ['method_not_allowed', post(newPet(), { ...asText, method: 'PUT' })],
  'the type of a body is checked before parameters': ['unsupported_media_type', post(newPet(), strictText)],
  'the type of a body is checked before its size': ['unsupported_media_type', post(tooLarge, asText)],
  'the type of a body is checked before its JSON': ['unsupported_media_type', post(invalidJson, asText)],
  'an empty body is missing, whatever its type': ['missing_body', post('', asText)],
  'a path that the interface does not describe is not found': ['not_found', unknown, '/store/orders'],
  'only JSON is accepted': ['unsupported_media_type', post(newPet(), asText), post(newPet(), asForm)],
  'only uncompressed bodies are accepted': ['unsupported_content_encoding', post(newPet(), gzipped)],
  'a body of 64 KiB is read': ['invalid_request', post('{}'.padEnd(bodyBytesMax))],
  'a larger body is refused': ['body_too_large', post(tooLarge)],
  'only UTF-8 is accepted': ['invalid_json', post(latin1)],
  'a name is 1 to 1,000 characters': ['invalid_request', ...postEach('name', ['', `${longestName}x`])],
  'a name has a visible character': ['invalid_request', ...postEach('name', [' \t\n\u00a0'])],
  'a name can be stored': ['invalid_request', ...postEach('name', ['conform \0', 'conform \ud800'])],
  'a status is not null': ['invalid_request', ...postEach('status', [null])],
  'an Idempotency-Key is up to 255 characters': ['invalid_request', postWith('k'.repeat(256))],
  'a limit is not clamped': ['invalid_request', ...listEach('limit=0', 'limit=-1', 'limit=101')],
  'a limit is an integer': ['invalid_request', ...listEach('limit=abc', 'limit=1.5', 'limit=')],
  'a status is exact': ['invalid_request', ...listEach('status=lost', 'status=Sold', 'status=')],
  'a parameter occurs once': ['invalid_request', ...listEach('limit=1&limit=1', 'status=sold&status=sold')],
  'a cursor is one of ours': ['invalid_cursor', ...listEach('cursor=conform', 'cursor=')],
  'an id that is not an int64 is not found': ['pet_not_found', '/pets/abc', '/pets/1.5', `/pets/${int64Max + 1n}`],
}

/** Requests with the names that the message of their Error contains. */
const problems: readonly (readonly [Sendable, ...names: readonly string[]])[] = [
  [postWith('""', '{"name":7,"status":"lost"}'), 'name', 'categoryId', 'status', 'Idempotency-Key'],
  ['/pets?limit=0&status=lost&cursor=x', 'limit', 'status', 'cursor'],
  ['/pets?limit=1&limit=1', 'limit'],
  [post(newPet(red), { ...strict, path: '/pets?size=big' }), 'size', 'colour'],
]

const decisions: Readonly<Record<string, (probe: Probe) => Promise<unknown>>> = {
  ...Object.fromEntries(
    Object.entries(refusals).map(([name, [code, ...requests]]) => [
      name,
      async (probe: Probe) => {
        for (const request of requests) await refused(probe, request, code)
      },
    ]),
  ),
  'a request without a key gets WWW-Authenticate without an error': async probe => {
    const { key } = probe.target
    const elsewhere = { ...noKey, path: `/pets?api_key=${key}&access_token=${key}`, headers: { 'X-Api-Key': key } }
    // Another scheme and an empty key count as no key.
    for (const request of [noKey, elsewhere, asking('Basic Y29uZm9ybTo='), asking('Bearer')]) {
      const { response } = await refused(probe, request, 'missing_api_key')
      expect(response.headers.get('WWW-Authenticate')).toBe('Bearer realm="petstore"')
    }
  },
  'a request with a wrong key gets WWW-Authenticate with invalid_token': async probe => {
    const form = /^Bearer realm="petstore", error="invalid_token", error_description="[^"]+"$/
    const { response } = await refused(probe, asking(wrongBearer), 'invalid_api_key')
    expect(response.headers.get('WWW-Authenticate')).toMatch(form)
  },
  'the scheme Bearer may be in any case, and one key follows it': async probe => {
    const { key } = probe.target
    for (const scheme of ['bearer', 'BEARER']) (await probe.send(asking(`${scheme} ${key}`))).expectStatus(200)
    await refused(probe, asking(`Bearer ${key} ${key}`), 'invalid_api_key')
  },
  'the message of an Error names every problem': async probe => {
    for (const [request, ...names] of problems) {
      const { message } = (await refused(probe, request, 'invalid_request')).object()
      for (const name of names) expect(message).toContain(name)
    }
  },
  'a 405 has Allow with the methods of the path': async probe => {
    const toPets = await refused(probe, post(newPet(), { method: 'PUT' }), 'method_not_allowed')
    const toPet = await refused(probe, post(newPet(), { path: `/pets/${absentId()}` }), 'method_not_allowed')
    expect([toPets, toPet].map(({ response }) => response.headers.get('Allow'))).toEqual([
      'GET, HEAD, POST',
      'GET, HEAD',
    ])
  },
  'HEAD has the headers of GET and no body': async probe => {
    // These belong to one response or one connection.
    const volatile = /^(date|x-request-id|content-length|transfer-encoding|connection|keep-alive|ratelimit)$/
    const stable = ({ response: { status, headers } }: Exchange) => [
      status,
      [...headers].filter(([name]) => !volatile.test(name)).toSorted(),
    ]
    for (const path of [await probe.petPath(), '/pets?limit=1', '/pets?limit=0', unknown]) {
      const head = await probe.send({ path, method: 'HEAD' })
      expect([head.text, stable(head)]).toEqual(['', stable(await probe.send(path))])
    }
  },
  'the Content-Type may have parameters or be missing': async probe => {
    await accepted(probe, post(newPet(), typed('application/json; charset=utf-8')))
    // Bytes, because fetch adds a Content-Type to a string.
    await accepted(probe, { path: '/pets', method: 'POST', body: new TextEncoder().encode(newPet()) })
  },
  'Location is the address of the new animal': async probe => {
    const created = await probe.create()
    const form = new RegExp(`^(https?:/)?/.*/pets/${created.petId()}$`)
    expect(created.response.headers.get('Location')).toMatch(form)
  },
  'responses are JSON for any Accept header': async probe => {
    const list = await probe.send({ path: '/pets?limit=1', headers: { Accept: 'text/html' } })
    list.expectJsonType()
  },
  'a name is stored exactly: 1,000 characters, outer spaces and combining characters': async probe => {
    for (const name of [longestName, `  ${petName()} e\u0301 \u00e9 `]) {
      await expectStored(probe, { name: JSON.stringify(name) }, { name })
    }
  },
  'a categoryId may be negative or have an exponent': async probe => {
    await expectStored(probe, { categoryId: '922337203685477580.7e1' }, { categoryId: int64Max })
    await expectStored(probe, { categoryId: `${int64Min}` }, { categoryId: int64Min })
  },
  'an animal added without a status has none': async probe => {
    expect((await probe.create({ status: undefined })).object()).not.toHaveProperty('status')
  },
  'unknown properties and parameters are ignored, including id': async probe => {
    const created = await probe.create({ id: '-7', ...red })
    expect(created.petId()).not.toBe(-7n)
    expect(created.object()).not.toHaveProperty('colour')
    const list = await probe.send('/pets?limit=1&colour=red')
    list.expectStatus(200)
  },
  'with strict handling, unknown properties and parameters are 400 and named': async probe => {
    const { response } = await probe.send({ path: '/pets?limit=1', ...strict })
    expect([response.status, response.headers.get('Preference-Applied')]).toEqual([200, 'handling=strict'])
    for (const request of [post(newPet(red), strict), { path: '/pets?limit=1&colour=red', ...strict }]) {
      const error = await refused(probe, request, 'invalid_request')
      expect(error.response.headers.get('Preference-Applied')).toBe('handling=strict')
      expect(error.object()['message']).toContain('colour')
    }
  },
  'GET /pets/{petId} announces its removal, also on 404': async probe => {
    for (const path of [await probe.petPath(), `/pets/${absentId()}`]) {
      const found = await probe.send(path)
      const { headers, url, ok } = found.response
      const status = ok ? found.object()['status'] : undefined
      const links = new Map(readLinks(headers.get('Link'), url).map(({ rel, href }) => [rel, href]))
      expect(headers.get('Deprecation')).toBe('@1794700800')
      expect(headers.get('Sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT')
      expect(links.get('deprecation')).toBeString()
      expect(links.get('successor-version')).toEndWith(status === undefined ? '/pets' : `/pets?status=${status}`)
    }
  },
  'the next link has limit, status and a cursor, which is X-Next-Cursor': async probe => {
    await probe.ensurePets(2, 'sold')
    const list = await probe.list('?limit=1&status=sold')
    const { limit, status, cursor = '' } = Object.fromEntries(new URLSearchParams(nextQuery(list)))
    expect({ limit, status }).toEqual({ limit: '1', status: 'sold' })
    expect(cursor).not.toBe('')
    expect(list.response.headers.get('X-Next-Cursor')).toBe(cursor)
  },
  'following the next links lists every animal once, in ascending order of id, and ends': async probe => {
    await probe.ensurePets(21)
    const ids: bigint[] = []
    for (let query: string | undefined = '?limit=20'; query !== undefined; ) {
      const list = await probe.list(query)
      expect(list.petIds()).not.toBeEmpty()
      for (const id of list.petIds()) {
        expect(id).toBeGreaterThan(ids.at(-1) ?? int64Min)
        ids.push(id)
      }
      query = nextQuery(list)
    }
    expect(ids.length).toBeGreaterThan(20)
    expect(probe.addedIds.filter(id => !ids.includes(id))).toEqual([])
  },
  'GET /pets with a changed cursor, or that of another status, is 400': async probe => {
    await probe.ensurePets(2)
    const cursor = new URLSearchParams(nextQuery(await probe.list('?limit=1'))).get('cursor') ?? ''
    const changed = cursor.slice(0, -1) + (cursor.endsWith('A') ? 'B' : 'A')
    await refused(probe, `/pets?limit=1&cursor=${changed}`, 'invalid_cursor')
    await refused(probe, `/pets?limit=1&status=sold&cursor=${cursor}`, 'invalid_cursor')
  },
  'X-Request-Id is the one that the client sent': async probe => {
    const id = newKey()
    const { headers } = (await probe.send({ path: '/pets', headers: { 'X-Request-Id': id } })).response
    expect(headers.get('X-Request-Id')).toBe(id)
  },
  'X-Request-Id is new if the client sent none or an unsafe one': async probe => {
    const seen = new Set<string | null>()
    for (const headers of [{}, {}, { 'X-Request-Id': '<conform>' }]) {
      const { response } = await probe.send({ path: '/pets', headers })
      expect(response.headers.get('X-Request-Id')).toMatch(/^[^<]+$/)
      seen.add(response.headers.get('X-Request-Id'))
    }
    expect(seen.size).toBe(3)
  },
  'a creation repeated with its Idempotency-Key adds nothing, however both are spelled': async probe => {
    const [key, name] = [newKey(), JSON.stringify(petName())]
    const first = await accepted(probe, postWith(key, newPet({ name, categoryId: '100' })))
    const respelled = newPet({ categoryId: '1.0e2', name: name.replace('c', '\\u0063'), ...red })
    for (const request of [postWith(`"${key}"`, newPet({ name, categoryId: '100' })), postWith(key, respelled)]) {
      const again = await probe.send(request)
      expect(again.text).toBe(first.text)
      const shown = ['Location', 'Idempotency-Replayed'].map(header => again.response.headers.get(header))
      expect([again.response.status, ...shown]).toEqual([201, first.response.headers.get('Location'), 'true'])
    }
  },
  'an Idempotency-Key that was used for another animal is 422': async probe => {
    const key = newKey()
    await accepted(probe, postWith(key))
    await refused(probe, postWith(key), 'idempotency_key_reused')
  },
  'a creation that failed does not use up its Idempotency-Key': async probe => {
    const key = newKey()
    await refused(probe, postWith(key, '{"categoryId":1}'), 'invalid_request')
    const { response } = await accepted(probe, postWith(key))
    expect(response.headers.get('Idempotency-Replayed')).toBeNull()
  },
}

/** The query of the next page. */
function nextQuery({ response }: Exchange): string | undefined {
  const next = readLinks(response.headers.get('Link'), response.url).find(({ rel }) => rel === 'next')
  return next && new URL(next.href).search
}

/** The response to a creation. */
async function accepted(probe: Probe, request: Sendable): Promise<Exchange> {
  return (await probe.send(request)).expectStatus(201)
}

/** An animal that is created with these fields has these values in both responses. */
async function expectStored(probe: Probe, sent: Record<string, string>, values: Record<string, unknown>) {
  const created = await probe.create(sent)
  const got = await probe.send(`/pets/${created.petId()}`)
  for (const one of [created, got]) one.expectValues(one.object(), values)
}

/** The response to a request that the server refuses with this code: an Error with exactly three fields. */
async function refused(probe: Probe, request: Sendable, code: ErrorCode): Promise<Exchange> {
  const exchange = await probe.send(request)
  const { status } = errorCodes[code]
  expect({ ...exchange.expectStatus(status).object() }).toEqual({ code, message: expect.any(String), status })
  return exchange
}
