import { expect } from 'bun:test'
import { readLinks } from '../../src/client/headers.ts'
import { absentId, type Exchange, newPet, Probe, petName, post, type Sendable } from '../../src/conform/check.ts'
import { bodyBytesMax, type ErrorCode, errorCodes } from '../../src/http/operations.ts'
import { int64Max } from '../../src/int64.ts'

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
const typed = (type: string) => ({ headers: { 'Content-Type': type } })
const asText = typed('text/plain')
const strict = { headers: { Prefer: 'handling=strict' } }
const strictText = { path: '/pets?colour=red', headers: { ...strict.headers, ...asText.headers } }
const red = { colour: '"red"' }
const newKey = () => `conform-${crypto.randomUUID()}`
const postWith = (idempotencyKey: string, body = newPet()) =>
  post(body, { headers: { 'Idempotency-Key': idempotencyKey } })

/** The code of each request, if only that is decided. */
const refusals: Readonly<Record<string, readonly [ErrorCode, ...requests: readonly Sendable[]]>> = {
  'the key is checked before the path': ['missing_api_key', { ...noKey, path: unknown }],
  'the key is checked before the method': ['missing_api_key', { ...noKey, method: 'PUT' }],
  'the key is checked before the body': ['missing_api_key', post(invalidJson, noKey)],
  'the path is checked before the method': ['not_found', { path: unknown, method: 'PUT' }],
  'the method is checked before the body': ['method_not_allowed', post(newPet(), { ...asText, method: 'PUT' })],
  'the type of a body is checked before parameters': ['unsupported_media_type', post(newPet(), strictText)],
  'an empty body is missing, whatever its type': ['missing_body', post('', asText)],
  'a path that the interface does not describe is not found': ['not_found', unknown, '/store/orders'],
  'a body of 64 KiB is read': ['invalid_request', post('{}'.padEnd(bodyBytesMax))],
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
  'the message of an Error names every problem': async probe => {
    for (const [request, ...names] of problems) {
      const { message } = (await refused(probe, request, 'invalid_request')).object()
      for (const name of names) expect(message).toContain(name)
    }
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
  'responses are JSON for any Accept header': async probe => {
    const list = await probe.send({ path: '/pets?limit=1', headers: { Accept: 'text/html' } })
    list.expectJsonType()
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
  'GET /pets with a changed cursor, or that of another status, is 400': async probe => {
    await probe.ensurePets(2)
    const cursor = new URLSearchParams(nextQuery(await probe.list('?limit=1'))).get('cursor') ?? ''
    const changed = cursor.slice(0, -1) + (cursor.endsWith('A') ? 'B' : 'A')
    await refused(probe, `/pets?limit=1&cursor=${changed}`, 'invalid_cursor')
    await refused(probe, `/pets?limit=1&status=sold&cursor=${cursor}`, 'invalid_cursor')
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
  'a change touches only what was sent, and needs the status that it names': async probe => {
    const created = await probe.create()
    const { id, name, categoryId } = created.object()
    const path = `/pets/${created.petId()}`
    const change = async (body: string, query = '', type = 'application/merge-patch+json') => {
      const sent = await probe.send({ ...typed(type), path: `${path}${query}`, method: 'PATCH', body })
      return sent.expectStatus(200).object()
    }
    expect({ ...(await change('{"status":"pending"}')) }).toEqual({ id, name, categoryId, status: 'pending' })
    expect({ ...(await change('{"status":null}', '?status=pending')) }).toEqual({ id, name, categoryId })
    await refused(
      probe,
      { path: `${path}?status=pending`, method: 'PATCH', body: '{"status":"sold"}' },
      'status_changed',
    )
    expect({ ...(await change('{"id":-7,"name":"New"}', '', 'application/json')) }).toEqual({
      id,
      name: 'New',
      categoryId,
    })
    expect({ ...(await probe.send(path)).object() }).toEqual({ id, name: 'New', categoryId })
  },
  'a removal has no content and leaves nothing': async probe => {
    const path = `/pets/${(await probe.create()).petId()}`
    await refused(probe, { path: `${path}?status=lost`, method: 'DELETE' }, 'invalid_request')
    await refused(probe, { path: `${path}?status=pending`, method: 'DELETE' }, 'status_changed')
    const { response, text } = await probe.send({ path, method: 'DELETE' })
    expect([response.status, response.headers.get('Content-Type'), text]).toEqual([204, null, ''])
    for (const method of ['GET', 'DELETE']) await refused(probe, { path, method }, 'pet_not_found')
    await refused(probe, { path, method: 'PATCH', body: '{}' }, 'pet_not_found')
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

/** The response to a request that the server refuses with this code: an Error with exactly three fields. */
async function refused(probe: Probe, request: Sendable, code: ErrorCode): Promise<Exchange> {
  const exchange = await probe.send(request)
  const { status } = errorCodes[code]
  expect({ ...exchange.expectStatus(status).object() }).toEqual({ code, message: expect.any(String), status })
  return exchange
}
