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

const post = (body: string, options: Partial<ProbeRequest> = {}) => ({
  method: 'POST',
  path: '/pets',
  body,
  ...options,
})
const get = (path: string): ProbeRequest => ({ path })
const noKey = { path: '/pets', authorization: null }
const unknown = '/conform-nothing-is-here'
const strict = { Prefer: 'handling=strict' }
const postWith = (key: string, body: string) => post(body, { headers: { 'Idempotency-Key': key } })

type Decision = (probe: Probe) => Promise<unknown>

/** If only the code is decided. */
function refusing(code: ErrorCode, ...requests: readonly ProbeRequest[]): Decision {
  return async probe => {
    for (const request of requests) await refused(probe, request, code)
  }
}

const typedText = { path: '/pets?colour=red', headers: { ...strict, 'Content-Type': 'text/plain' } }

const decisions: Readonly<Record<string, Decision>> = {
  'the key is checked before the path': refusing('missing_api_key', { ...noKey, path: unknown }),
  'the key is checked before the method': refusing('missing_api_key', { ...noKey, method: 'PUT' }),
  'the key is checked before the body': refusing('missing_api_key', post('{"name":', noKey)),
  'the path is checked before the method': refusing('not_found', { path: unknown, method: 'PUT' }),
  'the method is checked before the body': refusing('method_not_allowed', post('{', { method: 'PUT' })),
  'the type of a body is checked before parameters': refusing('unsupported_media_type', post(newPet(), typedText)),
  'an id that is not an int64 is not found': refusing('pet_not_found', get('/pets/abc'), get(`/pets/${int64Max + 1n}`)),
  'a request without a key gets WWW-Authenticate without an error': async probe => {
    const { key } = probe.target
    const elsewhere = { ...noKey, path: `/pets?api_key=${key}&access_token=${key}`, headers: { 'X-Api-Key': key } }
    for (const request of [noKey, elsewhere, { ...noKey, authorization: 'Basic Y29uZm9ybTo=' }]) {
      const { headers } = await refused(probe, request, 'missing_api_key')
      expect(headers.get('WWW-Authenticate')).toBe('Bearer realm="petstore"')
    }
  },
  'HEAD has the headers of GET and no body': async probe => {
    const named = ['Content-Type', 'Cache-Control', 'Link', 'X-Next-Cursor', 'Deprecation', 'Sunset']
    const stable = ({ status, headers }: Exchange) => [status, ...named.map(name => headers.get(name))]
    for (const path of [await addPath(probe), '/pets?limit=1', unknown]) {
      const head = await probe.send({ path, method: 'HEAD' })
      expect([head.text, stable(head)]).toEqual(['', stable(await probe.send(get(path)))])
    }
  },
  'unknown properties and parameters are ignored, including id, and so is Accept': async probe => {
    const { json } = await probe.create({ id: -7, colour: 'red' }, {})
    expect(Object(json).id).not.toBe(-7)
    expect(json).not.toHaveProperty('colour')
    const list = await probe.send({ path: '/pets?limit=1&colour=red', headers: { Accept: 'text/html' } }, 200)
    expect(list.headers.get('Content-Type')).toBe('application/json')
  },
  'an Error names every problem, with strict handling also unknown properties and parameters': async probe => {
    const invalid = postWith('""', '{"name":7,"colour":"red"}')
    const headers = { ...invalid.headers, ...strict }
    for (const [request, ...names] of [
      [invalid, 'name', 'categoryId', 'Idempotency-Key'],
      [{ ...invalid, path: '/pets?size=big', headers }, 'name', 'categoryId', 'Idempotency-Key', 'size', 'colour'],
    ] as const) {
      const { json, headers } = await refused(probe, request, 'invalid_request')
      for (const name of names) expect(Object(json).message).toContain(name)
      expect(headers.get('Preference-Applied')).toBe(request === invalid ? null : 'handling=strict')
    }
    const list = await probe.send({ path: '/pets?limit=1', headers: strict }, 200)
    expect(list.headers.get('Preference-Applied')).toBe('handling=strict')
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
    const [, next = ''] = /<([^>]*)>; rel="next"/.exec(headers.get('Link') ?? '') ?? []
    const { searchParams } = new URL(next, probe.target.baseUrl)
    const cursor = headers.get('X-Next-Cursor')
    expect<unknown>(Object.fromEntries(searchParams)).toEqual({ limit: '1', status: 'sold', cursor })
    await refused(probe, get(`/pets?limit=1&cursor=${cursor}`), 'invalid_cursor')
    await probe.send(get(`/pets?${searchParams}`), 200)
  },
  'a creation repeated with its Idempotency-Key adds nothing, however both are spelled': async probe => {
    const [key, name] = [`conform-${crypto.randomUUID()}`, `conform ${crypto.randomUUID()}`]
    await refused(probe, postWith(key, '{"categoryId":1}'), 'invalid_request')
    const first = await probe.send(postWith(key, newPet({ name, categoryId: 100 })), 201)
    expect(first.headers.get('Idempotency-Replayed')).toBeNull()
    const respelled = `{"colour":"red","categoryId":1.0e2,"status":"available","name":"\\u0063${name.slice(1)}"}`
    const again = await probe.send(postWith(`"${key}"`, respelled), 201)
    expect(again.text).toBe(first.text)
    const shown = ['Location', 'Idempotency-Replayed'].map(header => again.headers.get(header))
    expect(shown).toEqual([first.headers.get('Location'), 'true'])
  },
  'a change touches only what was sent, and needs the status that it names': async probe => {
    const { id, name, categoryId } = Object((await probe.create()).json)
    const path = `/pets/${id}`
    const change = async (body: string, query = '') => ({
      ...Object((await probe.send({ path: `${path}${query}`, method: 'PATCH', body }, 200)).json),
    })
    expect(await change('{"status":"pending"}')).toEqual({ id, name, categoryId, status: 'pending' })
    expect(await change('{"status":null}', '?status=pending')).toEqual({ id, name, categoryId })
    await refused(probe, { path: `${path}?status=sold`, method: 'PATCH', body: '{}' }, 'status_changed')
    expect(await change('{"id":-7,"name":"New"}')).toEqual({ id, name: 'New', categoryId })
  },
}

async function addPath(probe: Probe): Promise<string> {
  const { json } = await probe.create()
  return `/pets/${Object(json).id}`
}

/** The response to a request that the server refuses with this code: an Error with exactly three fields. */
async function refused(probe: Probe, request: ProbeRequest, code: ErrorCode): Promise<Exchange> {
  const { status } = errorCodes[code]
  const exchange = await probe.send(request, status)
  expect({ ...Object(exchange.json) }).toEqual({ code, message: expect.any(String), status })
  return exchange
}
