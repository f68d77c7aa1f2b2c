import { afterAll, describe, expect, test } from 'bun:test'
import { documentedConfiguration, nginx, startNginx } from '../cli/nginx.ts'
import { exchange } from '../support/connections.ts'
import { freePort, startServer } from '../support/process.ts'

const key = 'a-key-for-refused-bodies-0123456789'
const server = await startServer({ env: { PETSTORE_API_KEY: key } })
afterAll(() => server[Symbol.asyncDispose]())
const origin = new URL(server.url).origin

const json: Record<string, string> = { 'content-type': 'application/json' }
const keyed = { ...json, authorization: `Bearer ${key}` }
const withoutKey = { status: 401, method: 'POST', path: '/v1/pets', headers: json, bytes: 1e6 }
const refusals = [
  withoutKey,
  { ...withoutKey, status: 404, path: '/v1/nothing', headers: keyed },
  { ...withoutKey, status: 405, method: 'PUT', headers: keyed },
  { ...withoutKey, status: 413, headers: keyed },
  { ...withoutKey, status: 415, headers: { ...keyed, 'content-type': 'text/plain' } },
]
/** A server that does not read the rest of a body fails some of them. */
const uploads = [1e6, 5e6].flatMap(bytes => refusals.map(refusal => ({ ...refusal, bytes })))
const nginxBytesMax = 1024 ** 2

/** Gives the statuses in the Error bodies. It loses those of connections that the server closes with unread data. */
const nodeClient = `
  import { request } from 'node:http'
  const { origin, uploads } = JSON.parse(await new Response(process.stdin).text())
  const send = ({ method, path, headers }, body) => new Promise((resolve, reject) => {
    const options = { method, headers: { ...headers, 'content-length': body.length }, agent: false }
    const sent = request(origin + path, options, response =>
      new Response(response).json().then(({ status }) => resolve(status), reject))
    sent.on('error', reject)
    sent.end(body)
  })
  const statuses = []
  for (const upload of uploads) statuses.push(await send(upload, Buffer.alloc(upload.bytes)).catch(String))
  console.log(JSON.stringify(statuses))
  process.exit()`

async function upload(origin: string): Promise<unknown> {
  const stdin = Buffer.from(JSON.stringify({ origin, uploads }))
  const command = ['node', '--input-type=module', '--eval', nodeClient]
  const child = Bun.spawn(command, { stdin, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if (!stdout) throw new Error(stderr)
  return JSON.parse(stdout)
}

const port = freePort()
const viaNginx = `http://127.0.0.1:${port}`
const proxy = nginx && (await startNginx(documentedConfiguration(port, new URL(origin).host), port))
afterAll(async () => proxy && (await proxy[Symbol.asyncDispose]()))

test('Node receives every Error body of an upload that is refused', async () => {
  expect(await upload(origin)).toEqual(uploads.map(({ status }) => status))
})

describe.skipIf(!nginx)('through the documented nginx configuration', () => {
  test('Node receives every Error body, above 1 MiB that of nginx', async () => {
    const expected = uploads.map(({ status, bytes }) => (bytes > nginxBytesMax ? 413 : status))
    expect(await upload(viaNginx)).toEqual(expected)
  })

  const long = 'a'.repeat(40_000)
  const ask = (line: string, header = 'X: y') => `${line} HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n`
  test.each([
    ['a backslash in the path', 400, 'bad_request', ask('GET /.\\metrics')],
    ['an invalid escape', 400, 'bad_request', ask('GET /%zz')],
    ['a long path', 414, 'bad_request', ask(`GET /v1/pets?${long}`)],
    ['a long header', 431, 'headers_too_large', ask('GET /v1/pets', `X: ${long}`)],
    ['300 headers of a removal', 431, 'headers_too_large', ask('DELETE /v1/pets/1', 'X: 1\r\n'.repeat(300))],
    ['300 headers', 431, 'headers_too_large', ask('GET /v1/pets', 'X: 1\r\n'.repeat(300))],
    ['an invalid chunk', 400, 'bad_request', `${ask('POST /v1/pets', 'Transfer-Encoding: chunked')}zz\r\n\r\n`],
    ['another Transfer-Encoding', 501, 'bad_request', ask('POST /v1/pets', 'Transfer-Encoding: gzip')],
    ['TRACE', 405, 'method_not_allowed', ask('TRACE /v1/pets')],
    ['a method in lower case', 400, 'bad_request', ask('get /v1/pets')],
    ['another version of HTTP', 505, 'bad_request', ask('GET /v1/pets').replace('1.1', '3.0')],
    ['the page of its errors', 404, 'not_found', ask('GET /proxy-error')],
  ])('nginx refuses %s with %p and an Error body, code %s', async (_, status, code, request) => {
    const [reply] = (await exchange(port, [request], { expected: 1 })).replies
    expect(JSON.parse(reply?.text ?? '')).toEqual({ code, message: expect.any(String), status })
    expect(reply?.status).toBe(status)
  })

  test.each([
    ['/v1/pets?limit=1', 'GET, HEAD, POST'],
    ['/v1/pets/1?status=sold', 'GET, HEAD, PATCH, DELETE'],
    ['/docs', 'GET, HEAD'],
  ])('an unknown method at %s is 405, with Allow: %s and the request id', async (path, allow) => {
    const request = ask(`FOO ${path}`, 'X-Request-Id: find-me')
    const [reply] = (await exchange(port, [request], { expected: 1, quietMs: 0 })).replies
    expect(JSON.parse(reply?.text ?? '')).toMatchObject({ code: 'method_not_allowed', status: 405 })
    expect([reply?.headers.get('allow'), reply?.headers.get('x-request-id')]).toEqual([allow, 'find-me'])
  })

  test('nginx has an Error body with Retry-After when the service is gone', async () => {
    const gonePort = freePort()
    const toNobody = documentedConfiguration(gonePort, `127.0.0.1:${freePort()}`)
    const withLivez = toNobody.replace('location / {', 'location = /livez { return 200; } location / {')
    await using _ = await startNginx(withLivez, gonePort)
    const response = await fetch(`http://127.0.0.1:${gonePort}/v1/pets`)
    expect([response.status, response.headers.get('retry-after')]).toEqual([502, '1'])
    expect(await response.json()).toMatchObject({ code: 'bad_gateway', status: 502 })
  })
})

// On a connection that stays open, the runtime discards the body: malformed-http shows that.
test('a refused body is not read as requests on a connection that closes', async () => {
  const inner = `GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`.repeat(2_000)
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${inner.length}\r\n\r\n`
  const { replies, closed } = await exchange(server.port, [head, inner], { expected: 1, quietMs: 0, follower: inner })
  expect([replies.map(({ status }) => status), closed]).toEqual([[401], true])
})
