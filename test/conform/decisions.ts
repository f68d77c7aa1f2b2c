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
const bodyBytesMax = 64 * 1024
const tooLarge = '{}'.padEnd(bodyBytesMax + 1)
const latin1 = Uint8Array.from(Buffer.from(newPet({ name: '"conform Ren\u00e9"' }), 'latin1'))
const longestName = `conform ${'🐕'.repeat(992)}`
const typed = (type: string) => ({ headers: { 'Content-Type': type } })
const asText = typed('text/plain')
const asForm = typed('application/x-www-form-urlencoded')
const gzipped = { headers: { 'Content-Encoding': 'gzip' } }
const strict = { headers: { Prefer: 'handling=strict' } }
const red = { colour: '"red"' }
const newKey = () => `conform-${crypto.randomUUID()}`
const postWith = (idempotencyKey: string, body = newPet()) =>
  post(body, { headers: { 'Idempotency-Key': idempotencyKey } })

/** The status of each request, if only that is decided. */
const refusals: Readonly<Record<string, readonly [status: number, ...requests: readonly Sendable[]]>> = {
  'GET of an unknown path without a key': [401, { ...noKey, path: unknown }],
  'GET of an unknown path': [404, unknown],
  'PUT /pets without a key': [401, { ...noKey, method: 'PUT' }],
  'PUT of an unknown path': [404, { path: unknown, method: 'PUT' }],
  'GET /store/orders': [404, '/store/orders'],
  'POST /pets with invalid JSON and without a key': [401, post(invalidJson, noKey)],
  'POST /pets with invalid JSON as text/plain': [415, post(invalidJson, asText)],
  'POST /pets with more than 64 KiB of text/plain': [415, post(tooLarge, asText)],
  'POST /pets with another media type': [415, post(newPet(), asText), post(newPet(), asForm)],
  'POST /pets with a Content-Encoding': [415, post(newPet(), gzipped)],
  'POST /pets with an empty body of text/plain': [400, post('', asText)],
  'POST /pets with an empty object in 64 KiB': [400, post('{}'.padEnd(bodyBytesMax))],
  'POST /pets with more than 64 KiB': [413, post(tooLarge)],
  'POST /pets with a body that is not UTF-8': [400, post(latin1)],
  'POST /pets with an empty name': [400, ...postEach('name', [''])],
  'POST /pets with a name of white space': [400, ...postEach('name', [' \t\n\u00a0'])],
  'POST /pets with a name of more than 1,000 characters': [400, ...postEach('name', [`${longestName}x`])],
  'POST /pets with a name with U+0000': [400, ...postEach('name', ['conform \0'])],
  'POST /pets with a name with an unpaired surrogate': [400, ...postEach('name', ['conform \ud800'])],
  'POST /pets with the status null': [400, ...postEach('status', [null])],
  'POST /pets with an Idempotency-Key of 256 characters': [400, postWith('k'.repeat(256))],
  'GET /pets with a limit below 1': [400, '/pets?limit=0', '/pets?limit=-1'],
  'GET /pets with a limit above 100': [400, '/pets?limit=101', `/pets?limit=${int64Max + 1n}`],
  'GET /pets with a limit that is not an integer': [400, '/pets?limit=abc', '/pets?limit=1.5', '/pets?limit=0x10'],
  'GET /pets with an empty limit': [400, '/pets?limit='],
  'GET /pets with a repeated limit': [400, '/pets?limit=1&limit=1'],
  'GET /pets with an unknown status': [400, '/pets?status=lost', '/pets?status=Sold'],
  'GET /pets with an empty status': [400, '/pets?status='],
  'GET /pets with a repeated status': [400, '/pets?status=sold&status=sold'],
  'GET /pets with an unknown cursor': [400, '/pets?cursor=conform'],
  'GET /pets/{petId} with text that is not an int64': [404, '/pets/abc', '/pets/1.5', `/pets/${int64Max + 1n}`],
}

/** Requests with the names that the message of their Error contains. */
const problems: readonly (readonly [Sendable, ...names: readonly string[]])[] = [
  [post(newPet({ name: '""' })), 'name'],
  [post(newPet({ categoryId: undefined })), 'categoryId'],
  [post(newPet({ status: 'null' })), 'status'],
  ['/pets?limit=0', 'limit'],
  ['/pets?limit=', 'limit'],
  ['/pets?limit=1&limit=1', 'limit'],
  ['/pets?status=lost', 'status'],
  [post('{"name":7,"status":"lost"}'), 'name', 'categoryId', 'status'],
  ['/pets?limit=0&status=lost', 'limit', 'status'],
]

export const decisions: Readonly<Record<string, (probe: Probe) => Promise<unknown>>> = {
  ...Object.fromEntries(
    Object.entries(refusals).map(([what, [status, ...requests]]) => [
      `${what} is ${status}`,
      async (probe: Probe) => {
        for (const request of requests) await refused(probe, request, status)
      },
    ]),
  ),
  'a request without a key gets WWW-Authenticate without an error': async probe => {
    // Another scheme and an empty key count as no key.
    for (const authorization of [null, 'Basic Y29uZm9ybTo=', 'Bearer']) {
      const { response } = await refused(probe, asking(authorization), 401)
      expect(response.headers.get('WWW-Authenticate')).toBe('Bearer realm="petstore"')
    }
  },
  'a request with a wrong key gets WWW-Authenticate with invalid_token': async probe => {
    const form = /^Bearer realm="petstore", error="invalid_token", error_description="[^"]+"$/
    const { response } = await refused(probe, asking(wrongBearer), 401)
    expect(response.headers.get('WWW-Authenticate')).toMatch(form)
  },
  'the scheme Bearer may be in any case, and one key follows it': async probe => {
    const { key } = probe.target
    for (const scheme of ['bearer', 'BEARER']) (await probe.send(asking(`${scheme} ${key}`))).expectStatus(200)
    await refused(probe, asking(`Bearer ${key} ${key}`), 401)
  },
  'the message of an Error names every problem': async probe => {
    for (const [request, ...names] of problems) {
      const { message } = (await refused(probe, request, 400)).object()
      for (const name of names) expect(message).toContain(name)
    }
  },
  'a 405 has Allow with the methods of the path': async probe => {
    const toPets = await refused(probe, post(newPet(), { method: 'PUT' }), 405)
    const toPet = await refused(probe, post(newPet(), { path: `/pets/${absentId()}` }), 405)
    expect([toPets, toPet].map(({ response }) => response.headers.get('Allow'))).toEqual([
      'GET, HEAD, POST',
      'GET, HEAD',
    ])
  },
  'HEAD has the headers of GET and no body': async probe => {
    // These belong to one response or one connection.
    const volatile = /^(date|x-request-id|content-length|transfer-encoding|connection|keep-alive|ratelimit)$/
    const stable = ({ response }: Exchange) => [...response.headers].filter(([name]) => !volatile.test(name)).toSorted()
    for (const path of [await probe.petPath(), '/pets?limit=1']) {
      const head = await probe.send({ path, method: 'HEAD' })
      expect([head.expectStatus(200).text, stable(head)]).toEqual(['', stable(await probe.send(path))])
    }
  },
  'the Content-Type may have parameters or be missing': async probe => {
    await probe.create(post(newPet(), typed('application/json; charset=utf-8')))
    // Bytes, because fetch adds a Content-Type to a string.
    await probe.create({ path: '/pets', method: 'POST', body: new TextEncoder().encode(newPet()) })
  },
  'Location is the address of the new animal': async probe => {
    const created = await probe.create()
    const form = new RegExp(`^(https?:/)?/.*/pets/${created.petId()}$`)
    expect(created.response.headers.get('Location')).toMatch(form)
  },
  'a new animal gets a higher id than earlier ones': async probe => {
    const before = (await probe.create()).petId()
    expect((await probe.create()).petId()).toBeGreaterThan(before)
  },
  'responses are JSON for any Accept header': async probe => {
    const list = await probe.send({ path: '/pets?limit=1', headers: { Accept: 'text/html' } })
    list.expectJsonType()
  },
  'a name is stored exactly: 1,000 characters, outer spaces and combining characters': async probe => {
    for (const name of [longestName, `  ${petName()} e\u0301 \u00e9 `]) {
      const created = await probe.create({ name: JSON.stringify(name) })
      const got = await probe.send(`/pets/${created.petId()}`)
      for (const one of [created, got]) one.expectValues(one.object(), { name })
    }
  },
  'a categoryId may be negative or have an exponent': async probe => {
    for (const [sent, categoryId] of Object.entries({ '1.50e2': 150n, [`${int64Min}`]: int64Min })) {
      const created = await probe.create({ categoryId: sent })
      created.expectValues(created.object(), { categoryId })
    }
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
    for (const request of [post(newPet(red), strict), { path: '/pets?limit=1&colour=red', ...strict }]) {
      const error = await refused(probe, request, 400)
      expect(error.response.headers.get('Preference-Applied')).toBe('handling=strict')
      expect(error.object()['message']).toContain('colour')
    }
  },
  'GET /pets/{petId} announces its removal, also on 404': async probe => {
    for (const path of [await probe.petPath(), `/pets/${absentId()}`]) {
      const { headers, url } = (await probe.send(path)).response
      const links = new Map(readLinks(headers.get('Link'), url).map(({ rel, href }) => [rel, href]))
      expect(headers.get('Deprecation')).toBe('@1794700800')
      expect(headers.get('Sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT')
      expect(links.get('deprecation')).toBeString()
      expect(links.get('successor-version')).toEndWith('/pets?status=available')
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
      for (const id of list.petIds()) {
        expect(id).toBeGreaterThan(ids.at(-1) ?? int64Min)
        ids.push(id)
      }
      query = nextQuery(list)
    }
    expect(ids.length).toBeGreaterThan(20)
    expect(probe.added.filter(({ id }) => !ids.includes(id))).toEqual([])
  },
  'GET /pets with a changed cursor, or that of another status, is 400': async probe => {
    await probe.ensurePets(2)
    const cursor = new URLSearchParams(nextQuery(await probe.list('?limit=1'))).get('cursor') ?? ''
    const changed = cursor.slice(0, -1) + (cursor.endsWith('A') ? 'B' : 'A')
    await refused(probe, `/pets?limit=1&cursor=${changed}`, 400)
    await refused(probe, `/pets?limit=1&status=sold&cursor=${cursor}`, 400)
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
  'every response has Cache-Control: no-store and X-Content-Type-Options: nosniff': async probe => {
    for (const request of ['/pets', unknown, noKey]) {
      const { headers } = (await probe.send(request)).response
      expect(headers.get('Cache-Control')).toBe('no-store')
      expect(headers.get('X-Content-Type-Options')).toBe('nosniff')
    }
  },
  '/openapi.json, next to the base address, lists its servers': async probe => {
    // fetch resolves the dots.
    const openapi = await probe.send({ ...noKey, path: '/../openapi.json' })
    expect(openapi.expectStatus(200).object()['servers']).not.toBeEmpty()
  },
  'a creation repeated with its Idempotency-Key adds nothing, with and without quotes': async probe => {
    const [key, body] = [newKey(), newPet()]
    const first = await probe.create(postWith(key, body))
    expect(first.response.headers.get('Idempotency-Replayed')).toBeNull()
    for (const spelling of [key, `"${key}"`]) {
      const again = await probe.send(postWith(spelling, body))
      expect(again.expectStatus(201).petId()).toBe(first.petId())
      expect(again.response.headers.get('Idempotency-Replayed')).toBe('true')
    }
  },
  'an Idempotency-Key that was used for another animal is 422': async probe => {
    const key = newKey()
    await probe.create(postWith(key))
    await refused(probe, postWith(key), 422)
  },
  'a creation that failed does not use up its Idempotency-Key': async probe => {
    const key = newKey()
    await refused(probe, postWith(key, '{"categoryId":1}'), 400)
    const { response } = await probe.create(postWith(key))
    expect(response.headers.get('Idempotency-Replayed')).toBeNull()
  },
}

/** The query of the next page. */
function nextQuery({ response }: Exchange): string | undefined {
  const next = readLinks(response.headers.get('Link'), response.url).find(({ rel }) => rel === 'next')
  return next && new URL(next.href).search
}

/** The response to a request that the server refuses with this status: an Error with exactly three fields. */
async function refused(probe: Probe, request: Sendable, status: number): Promise<Exchange> {
  const exchange = await probe.send(request)
  const code = expect.stringMatching(/^[a-z]+(_[a-z]+)*$/)
  expect({ ...exchange.expectStatus(status).object() }).toEqual({ code, message: expect.any(String), status })
  return exchange
}
