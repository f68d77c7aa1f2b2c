import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { exchange } from '../support/connections.ts'
import { documentedConfiguration, freePort, nginx, startNginx } from '../support/nginx.ts'
import { portOf, residentBytes, type Server, startServer, temporaryFolder, testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const key = 'a-key-for-refused-bodies-0123456789'
/** For each client, size and refusal. A server that does not read the rest of a body fails some of them. */
const requestsEach = 3

interface Refusal {
  readonly status: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

const json = { 'content-type': 'application/json' }
const keyed = { ...json, authorization: `Bearer ${key}` }

const refusals: readonly Refusal[] = [
  { status: 401, method: 'POST', path: '/v1/pets', headers: json },
  { status: 404, method: 'POST', path: '/v1/nothing', headers: keyed },
  { status: 405, method: 'PUT', path: '/v1/pets', headers: keyed },
  { status: 413, method: 'POST', path: '/v1/pets', headers: keyed },
  { status: 415, method: 'POST', path: '/v1/pets', headers: { ...keyed, 'content-type': 'text/plain' } },
]

/** Outcomes by size: the status in each Error body, or why there is none. */
type Counts = Readonly<Record<string, number>>

async function bunFetch(origin: string, { method, path, headers }: Refusal, bytes: number): Promise<string> {
  try {
    const response = await fetch(origin + path, { method, headers, body: new Uint8Array(bytes) })
    return String(JSON.parse(await response.text()).status)
  } catch (error) {
    return String(error)
  }
}

const curl =
  (...flags: readonly string[]): typeof bunFetch =>
  async (origin, { method, path, headers }, bytes) => {
    const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    const command = ['curl', '-s', ...flags, '-X', method, ...given, '--data-binary', '@-', origin + path]
    const child = Bun.spawn(command, { stdin: new Uint8Array(bytes), stdout: 'pipe' })
    const text = await new Response(child.stdout).text()
    return text === '' ? `exit ${await child.exited}` : String(JSON.parse(text).status)
  }

/** Node's and Python's clients run in a process of their own, which reads its work from stdin as JSON. */
const nodeClient = `
  import { request } from 'node:http'
  const { origin, refusals, sizes, requestsEach, client } = JSON.parse(await new Response(process.stdin).text())
  const viaHttp = agent => ({ method, path, headers }, body) => new Promise((resolve, reject) => {
    const sent = request(origin + path, { method, headers: { ...headers, 'content-length': body.length }, agent }, response => {
      let text = ''
      response.on('data', chunk => { text += chunk })
      response.on('end', () => resolve(JSON.parse(text).status))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
  const upload = {
    fetch: async ({ method, path, headers }, body) =>
      (await (await fetch(origin + path, { method, headers, body })).json()).status,
    'http.request': viaHttp(),
    'http.request with Connection: close': viaHttp(false),
  }[client]
  const counts = {}
  for (const size of sizes) for (const refusal of refusals) for (let i = 0; i < requestsEach; i++) {
    const outcome = await upload(refusal, Buffer.alloc(size)).catch(error => error.cause?.code ?? error.code ?? String(error))
    const name = size + ' ' + outcome
    counts[name] = (counts[name] ?? 0) + 1
  }
  console.log(JSON.stringify(counts))
  process.exit()`

const pythonClient = `
import collections, http.client, json, sys, urllib.error, urllib.parse, urllib.request
work = json.load(sys.stdin)
def via_http(refusal, body):
    connection = http.client.HTTPConnection(urllib.parse.urlparse(work['origin']).netloc)
    connection.request(refusal['method'], refusal['path'], body, refusal['headers'])
    return json.load(connection.getresponse())['status']
def via_urllib(refusal, body):
    request = urllib.request.Request(work['origin'] + refusal['path'], body, refusal['headers'], method=refusal['method'])
    try: urllib.request.urlopen(request)
    except urllib.error.HTTPError as error: return json.load(error)['status']
upload = {'http.client': via_http, 'urllib': via_urllib}[work['client']]
counts = collections.Counter()
for size in work['sizes']:
    for refusal in work['refusals']:
        for _ in range(work['requestsEach']):
            try: outcome = upload(refusal, b'a' * size)
            except Exception as error: outcome = repr(error)
            counts['%d %s' % (size, outcome)] += 1
print(json.dumps(counts))`

const sizes = [1_000_000, 5_000_000]
const programs = {
  Node: ['node', '--input-type=module', '--eval', nodeClient],
  Python: ['python3', '-c', pythonClient],
} as const

async function inProcess(language: keyof typeof programs, client: string, origin: string): Promise<Counts> {
  const work = JSON.stringify({ origin, refusals, sizes, requestsEach, client })
  const child = Bun.spawn([...programs[language]], {
    stdin: Buffer.from(work),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([child.stdout, child.stderr].map(out => new Response(out).text()))
  if (!stdout) throw new Error(stderr)
  return JSON.parse(stdout)
}

async function here(upload: typeof bunFetch, origin: string): Promise<Counts> {
  const counts: Record<string, number> = {}
  for (const size of sizes) {
    for (const refusal of refusals.flatMap(refusal => Array<Refusal>(requestsEach).fill(refusal))) {
      const name = `${size} ${await upload(origin, refusal, size)}`
      counts[name] = (counts[name] ?? 0) + 1
    }
  }
  return counts
}

const withCurl: typeof clients = [
  ['curl', origin => here(curl(), origin)],
  ['curl with Connection: close', origin => here(curl('-H', 'Connection: close', '-H', 'Expect:'), origin)],
]
const clients: readonly (readonly [string, (origin: string) => Promise<Counts>])[] = [
  ['Bun fetch', origin => here(bunFetch, origin)],
  ...['fetch', 'http.request', 'http.request with Connection: close'].map(
    client => [`Node ${client}`, (origin: string) => inProcess('Node', client, origin)] as const,
  ),
  ...(Bun.which('curl') ? withCurl : []),
  ...(Bun.which('python3') ? ['http.client', 'urllib'] : []).map(
    client => [`Python ${client}`, (origin: string) => inProcess('Python', client, origin)] as const,
  ),
]

let folder: ReturnType<typeof temporaryFolder>
let server: Server

beforeAll(async () => {
  folder = temporaryFolder()
  server = await startServer({ cwd: folder.path, env: { PETSTORE_API_KEY: key } })
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

const all = Object.fromEntries(sizes.flatMap(size => refusals.map(({ status }) => [`${size} ${status}`, requestsEach])))

test.each(clients)('%s receives every Error body of an upload that is refused', async (_, upload) => {
  expect(await upload(new URL(server.url).origin)).toEqual(all)
})

describe.skipIf(!nginx)('through the documented nginx configuration', () => {
  let port: number
  let proxy: AsyncDisposable

  beforeAll(async () => {
    port = freePort()
    proxy = await startNginx(documentedConfiguration(port, new URL(server.url).host), port)
  })

  afterAll(() => proxy[Symbol.asyncDispose]())

  test.each(clients)('%s receives every Error body, above 1 MiB that of nginx', async (_, upload) => {
    const [small = 0, large = 0] = sizes
    const own = Object.fromEntries(refusals.map(({ status }) => [`${small} ${status}`, requestsEach]))
    expect(await upload(`http://127.0.0.1:${port}`)).toEqual({
      ...own,
      [`${large} 413`]: refusals.length * requestsEach,
    })
  })

  test('uploads without a key fail no request of another client', async () => {
    const [refusal] = refusals
    if (!refusal) throw new Error('no refusal')
    const origin = `http://127.0.0.1:${port}`
    let uploading = true
    const uploads = Promise.all(
      Array.from({ length: 3 }, async () => {
        for (let i = 0; i < 20; i++) expect(await bunFetch(origin, refusal, 1_000_000)).toBe('401')
      }),
    ).finally(() => {
      uploading = false
    })
    const statuses = new Map<number, number>()
    while (uploading) {
      const { status } = await fetch(`${origin}/v1/pets`, { headers: keyed })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    await uploads
    expect([...statuses.keys()]).toEqual([200])
  })

  test('nginx answers with Error bodies of its own when the service is gone or the path is not allowed', async () => {
    const ask = async (path: string, method = 'GET', header = '') => {
      const request = `${method} ${path} HTTP/1.1\r\nHost: x\r\n${header}\r\n`
      const { replies } = await exchange(port, [request], { expected: 1 })
      const [reply] = replies
      return [reply?.status, JSON.parse(reply?.text ?? '')]
    }
    for (const path of ['/.\\metrics', '/v1/..\\metrics']) {
      expect(await ask(path)).toEqual([400, { code: 'bad_request', message: expect.any(String), status: 400 }])
    }
    const long = `X-Long: ${'a'.repeat(40_000)}\r\n`
    expect(await ask('/v1/pets', 'GET', long)).toMatchObject([400, { code: 'bad_request', status: 400 }])
    expect(await ask('/v1/pets', 'TRACE')).toMatchObject([405, { code: 'method_not_allowed', status: 405 }])
    const gonePort = freePort()
    await using _ = await startNginx(
      documentedConfiguration(gonePort, `127.0.0.1:${freePort()}`).replace(
        'location / {',
        'location = /livez { return 200; } location / {',
      ),
      gonePort,
    )
    const response = await fetch(`http://127.0.0.1:${gonePort}/v1/pets`)
    expect([response.status, response.headers.get('retry-after')]).toEqual([502, '1'])
    expect(await response.json()).toMatchObject({ code: 'bad_gateway', status: 502 })
  })
})

test.each(['', 'Connection: close\r\n'])(
  'a refused body that holds requests is not read as requests (%p)',
  async connection => {
    const port = portOf(server)
    const inner = `GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`.repeat(2_000)
    const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\n${connection}Content-Length: ${inner.length}\r\n\r\n`
    const follower = `GET /v1/pets/0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`
    const { replies, closed } = await exchange(port, [head, inner], { expected: 1, follower })
    expect(replies.map(({ status }) => status)).toEqual(connection ? [401] : [401, 404])
    expect(closed).toBe(connection !== '')
  },
)

test('50 uploads of 5 MB at once, refused on connections that close, take little memory', async () => {
  const before = residentBytes(server.pid)
  const [refusal] = refusals
  if (!refusal) throw new Error('no refusal')
  const closing = { ...refusal, headers: { ...refusal.headers, connection: 'close' } }
  let peak = before
  const watch = setInterval(() => {
    peak = Math.max(peak, residentBytes(server.pid))
  }, 10)
  const uploads = Array.from({ length: 50 }, () => bunFetch(new URL(server.url).origin, closing, 5_000_000))
  expect(new Set(await Promise.all(uploads))).toEqual(new Set(['401']))
  clearInterval(watch)
  expect(peak - before).toBeLessThan(100 * 1024 ** 2)
})

test('after a refused body in endless chunks, the response is sent and the connection closed', async () => {
  const port = portOf(server)
  const head = 'POST /v1/pets HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
  const chunk = `fffff\r\n${'x'.repeat(0xfffff)}\r\n`
  const { received, closed } = await exchange(port, [head, ...Array.from({ length: 40 }, () => chunk)], {
    expected: 1,
    quietMs: 1_000,
  })
  expect(received).toStartWith('HTTP/1.1 401 ')
  expect(received).toMatch(/connection: close/i)
  expect(closed).toBe(true)
})
