import { expect } from 'bun:test'
import { type Exchange, newPet, Probe, type ProbeRequest } from '../../src/conform/probe.ts'
import { type ErrorCode, errorCodes } from '../../src/http/operations.ts'
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

const post = (body: string, options: Partial<ProbeRequest> = {}): ProbeRequest => ({
  method: 'POST',
  path: '/pets',
  body,
  ...options,
})
const get = (path: string): ProbeRequest => ({ path })
const asking = (authorization: string | null) => ({ path: '/pets', authorization })
const noKey = asking(null)
const unknown = '/conform-nothing-is-here'
const invalidJson = '{"name":'
const typed = (type: string) => ({ headers: { 'Content-Type': type } })
const asText = typed('text/plain')
const strict = { headers: { Prefer: 'handling=strict' } }
const strictText = { path: '/pets?colour=red', headers: { ...strict.headers, ...asText.headers } }
const red = { colour: 'red' }
const postWith = (idempotencyKey: string, body = newPet()) =>
  post(body, { headers: { 'Idempotency-Key': idempotencyKey } })

/** The code of each request, if only that is decided. */
const refusals: Readonly<Record<string, readonly [ErrorCode, ...requests: readonly ProbeRequest[]]>> = {
  'the key is checked before the path': ['missing_api_key', { ...noKey, path: unknown }],
  'the key is checked before the method': ['missing_api_key', { ...noKey, method: 'PUT' }],
  'the key is checked before the body': ['missing_api_key', post(invalidJson, noKey)],
  'the path is checked before the method': ['not_found', { path: unknown, method: 'PUT' }],
  'the method is checked before the body': ['method_not_allowed', post(newPet(), { ...asText, method: 'PUT' })],
  'the type of a body is checked before parameters': ['unsupported_media_type', post(newPet(), strictText)],
  'a path that the interface does not describe is not found': ['not_found', ...[unknown, '/store/orders'].map(get)],
  'an id that is not an int64 is not found': [
    'pet_not_found',
    ...['abc', '1.5', int64Max + 1n].map(id => get(`/pets/${id}`)),
  ],
}

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
      const { headers } = await refused(probe, request, 'missing_api_key')
      expect(headers.get('WWW-Authenticate')).toBe('Bearer realm="petstore"')
    }
  },
  'the message of an Error names every problem': async probe => {
    const invalid = postWith('""', '{"name":7,"status":"lost"}')
    const unknownNames = post(newPet(red), { ...strict, path: '/pets?size=big' })
    for (const [request, ...names] of [
      [invalid, 'name', 'categoryId', 'status', 'Idempotency-Key'],
      [unknownNames, 'size', 'colour'],
    ] as const) {
      const { message } = Object((await refused(probe, request, 'invalid_request')).json)
      for (const name of names) expect(message).toContain(name)
    }
  },
  'HEAD has the headers of GET and no body': async probe => {
    // These belong to one response or one connection.
    const volatile = /^(date|x-request-id|content-length|transfer-encoding|connection|keep-alive|ratelimit)$/
    const stable = ({ status, headers }: Exchange) => [
      status,
      [...headers].filter(([name]) => !volatile.test(name)).toSorted(),
    ]
    for (const path of [await addPath(probe), '/pets?limit=1', '/pets?limit=0', unknown]) {
      const head = await probe.send({ path, method: 'HEAD' })
      expect([head.text, stable(head)]).toEqual(['', stable(await probe.send(get(path)))])
    }
  },
  'unknown properties and parameters are ignored, including id, and so is Accept': async probe => {
    const { json } = await probe.create({ id: -7, ...red }, {})
    expect(Object(json).id).not.toBe(-7)
    expect(json).not.toHaveProperty('colour')
    const list = await probe.send({ path: '/pets?limit=1&colour=red', headers: { Accept: 'text/html' } }, 200)
    expect(list.headers.get('Content-Type')).toBe('application/json')
  },
  'with strict handling, unknown properties and parameters are 400 and named': async probe => {
    const list = await probe.send({ path: '/pets?limit=1', ...strict })
    expect([list.status, list.headers.get('Preference-Applied')]).toEqual([200, 'handling=strict'])
    for (const request of [post(newPet(red), strict), { path: '/pets?limit=1&colour=red', ...strict }]) {
      const error = await refused(probe, request, 'invalid_request')
      expect(error.headers.get('Preference-Applied')).toBe('handling=strict')
      expect(Object(error.json).message).toContain('colour')
    }
  },
  'GET /pets/{petId} announces its removal, also on 404': async probe => {
    for (const path of [await addPath(probe), '/pets/-1']) {
      const { headers } = await probe.send(get(path))
      const announced = ['Deprecation', 'Sunset'].map(header => headers.get(header))
      expect(announced).toEqual(['@1794700800', 'Thu, 05 Dec 2030 00:00:00 GMT'])
    }
  },
  'the next link has limit, status and a cursor for that status, which is X-Next-Cursor': async probe => {
    for (const status of ['sold', 'sold']) await probe.create({ status })
    const { headers } = await probe.send(get('/pets?limit=1&status=sold'))
    const next = findLink(headers, 'next', `${probe.target.baseUrl}/pets`)
    const query = Object.fromEntries(new URL(next ?? '').searchParams)
    expect(query).toEqual({ limit: '1', status: 'sold', cursor: expect.any(String) })
    expect(headers.get('X-Next-Cursor')).toBe(query['cursor'] ?? '')
    await refused(probe, get(`/pets?limit=1&cursor=${query['cursor']}`), 'invalid_cursor')
    await probe.send(get(`/pets?limit=1&status=sold&cursor=${query['cursor']}`), 200)
  },
  'a creation repeated with its Idempotency-Key adds nothing, however both are spelled': async probe => {
    const [key, name] = [`conform-${crypto.randomUUID()}`, `conform ${crypto.randomUUID()}`]
    await refused(probe, postWith(key, '{"categoryId":1}'), 'invalid_request')
    const first = await probe.send(postWith(key, newPet({ name, categoryId: 100 })), 201)
    expect(first.headers.get('Idempotency-Replayed')).toBeNull()
    const respelled = `{"colour":"red","categoryId":1.0e2,"status":"available","name":"\\u0063${name.slice(1)}"}`
    for (const request of [postWith(`"${key}"`, newPet({ name, categoryId: 100 })), postWith(key, respelled)]) {
      const again = await probe.send(request)
      expect(again.text).toBe(first.text)
      const shown = ['Location', 'Idempotency-Replayed'].map(header => again.headers.get(header))
      expect([again.status, ...shown]).toEqual([201, first.headers.get('Location'), 'true'])
    }
  },
  'a change touches only what was sent, and needs the status that it names': async probe => {
    const { id, name, categoryId } = Object((await probe.create()).json)
    const path = `/pets/${id}`
    const change = async (body: string, query = '', type = 'application/merge-patch+json') => {
      const sent = await probe.send({ ...typed(type), path: `${path}${query}`, method: 'PATCH', body }, 200)
      return { ...Object(sent.json) }
    }
    expect(await change('{"status":"pending"}')).toEqual({ id, name, categoryId, status: 'pending' })
    expect(await change('{"status":null}', '?status=pending')).toEqual({ id, name, categoryId })
    await refused(probe, { path: `${path}?status=sold`, method: 'PATCH', body: '{}' }, 'status_changed')
    const renamed = { id, name: 'New', categoryId }
    expect(await change('{"id":-7,"name":"New"}', '', 'application/json')).toEqual(renamed)
    expect({ ...Object((await probe.send(get(path))).json) }).toEqual(renamed)
  },
}

async function addPath(probe: Probe): Promise<string> {
  const { json } = await probe.create()
  return `/pets/${Object(json).id}`
}

/** The absolute address of the link with this relation. */
function findLink(headers: Headers, rel: string, base: string): string | undefined {
  const [, address] = new RegExp(`<([^>]*)>; rel="${rel}"`).exec(headers.get('link') ?? '') ?? []
  return address && new URL(address, base).href
}

/** The response to a request that the server refuses with this code: an Error with exactly three fields. */
async function refused(probe: Probe, request: ProbeRequest, code: ErrorCode): Promise<Exchange> {
  const { status } = errorCodes[code]
  const exchange = await probe.send(request, status)
  expect({ ...Object(exchange.json) }).toEqual({ code, message: expect.any(String), status })
  return exchange
}
