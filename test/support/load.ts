import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { type KeepAliveClient, keepAliveClient, type Outcome, type Reply, withClients } from './connections.ts'
import { newDatabase } from './postgres.ts'
import { loggedBy, petstore, portOf, type Server, startServer, temporaryFolder, until } from './process.ts'

export { portOf } from './process.ts'

const oddNames = [
  'Ünïcødé',
  'e\u0301 and \u00e9',
  '🐕‍🦺 🏳️‍🌈',
  '\u202eright to left',
  'שלום — السلام',
  '\u2028line\u2029paragraph',
  '𝒳 \u{10ffff}',
  '"quoted" \\ back / slash',
  '\u0001\t\n\r\u007f',
  '\ufeffmark \ufffd',
  "'); DROP TABLE pets;--",
]
const statuses = ['', ',"status":"available"', ',"status":"pending"', ',"status":"sold"']
const firstRounded = 2n ** 53n + 1n

/** An animal as JSON text, a different one for each number: an odd name, and a category that a double would round. */
export function animalBody(number: number): string {
  const name = JSON.stringify(`${oddNames[number % oddNames.length]} ${number}`)
  const distance = firstRounded + (BigInt(number) * 2n ** 33n + BigInt(number) * 2n)
  const categoryId = number % 2 === 0 ? distance : -distance
  return `{"name":${name},"categoryId":${categoryId}${statuses[number % statuses.length]}}`
}

/** A Pet as text, split without reading its numbers. */
export function animalOf(text: string): { readonly id: string; readonly body: string } {
  const [, id, rest] = /^\{"id":(\d+),(.*\})$/s.exec(text) ?? []
  if (id === undefined) throw new Error(`Not an animal: ${text}`)
  return { id, body: `{${rest}` }
}

/** The animals of a page. Inside a name the quotes have backslashes, so this splits only between animals. */
export function animalsIn(page: string) {
  const inside = page.slice(1, -1)
  return inside === '' ? [] : inside.split(/,(?=\{"id":)/).map(animalOf)
}

/** Every animal on every page, by its id, as the text that was sent for it. */
export async function allAnimals(client: KeepAliveClient): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  let path: string | undefined = '/v1/pets?limit=100'
  while (path !== undefined) {
    const outcome = await client.send({ method: 'GET', path })
    if (outcome.kind !== 'answered' || outcome.reply.status !== 200) {
      throw new Error(`Cannot list ${path}: ${JSON.stringify(outcome)}`)
    }
    for (const animal of animalsIn(outcome.reply.text)) {
      if (found.has(animal.id)) throw new Error(`Two animals have id ${animal.id}`)
      found.set(animal.id, animal.body)
    }
    path = /<([^>]+)>; rel="next"/.exec(outcome.reply.headers.get('link') ?? '')?.[1]
  }
  return found
}

/** Reads a copy of a SQLite file, so that the next server finds the file and its write-ahead log unchanged. */
export function inspectStore(file: string): { readonly integrity: string; readonly animals: number } {
  using folder = temporaryFolder()
  const copy = join(folder.path, 'copy.db')
  for (const suffix of ['', '-wal']) {
    if (existsSync(file + suffix)) copyFileSync(file + suffix, copy + suffix)
  }
  using database = new Database(copy, { readwrite: true, strict: true })
  const integrity = database.query('PRAGMA integrity_check').values().flat().join('\n')
  const [[animals] = []] = database.query('SELECT count(*) FROM pets').values()
  return { integrity, animals: Number(animals) }
}

/** A store that hangs is given up after 5 s; the rest is for a machine that is busy with other tests. */
export const answerMsMax = 6_500
/** A response that takes longer than this is a hang. */
const hangMs = 20_000
/** Requests that are in progress when the trouble is over have ended by then. */
const stopMsMax = 15_000
const pauseMs = 50

/** Clients that go on through any trouble, and what the store must therefore hold. */
export interface Load {
  /** The animals that were answered with 201, by their ids. */
  readonly acknowledged: Map<string, string>
  /** Sent without a key and answered with 503: each may be stored, but not twice. */
  readonly uncertain: Set<string>
  /** Responses that no client should get. */
  readonly wrong: string[]
  readonly unavailable: number
  readonly slowestMs: number
  /** Adds nothing new, and waits until every animal that was sent under a key is acknowledged. */
  stop(): Promise<void>
}

/** Of four clients two add animals under a key, one adds without, one reads. */
export function startLoad(port: number, key: string, clients = 16): Load {
  const acknowledged = new Map<string, string>()
  const uncertain = new Set<string>()
  const seen = { wrong: [] as string[], unavailable: 0, slowestMs: 0 }
  let made = 0
  let stopping = false
  let gone = false // the service, or our patience with it
  const isOver = () => gone || hasHung(seen.wrong)

  async function ask(client: KeepAliveClient, sent: Sent): Promise<Reply | undefined> {
    const { outcome, ms } = await timed(client, sent)
    seen.slowestMs = Math.max(seen.slowestMs, ms)
    // The service itself has ended.
    if (outcome.kind === 'refused') gone = true
    const problem = problemWith(outcome, ms, sent.method === 'POST' ? 201 : 200)
    if (problem !== undefined) seen.wrong.push(`${sent.method} ${sent.path}: ${problem}`)
    if (outcome.kind === 'answered' && outcome.reply.status < 300) return outcome.reply
    seen.unavailable += 1
    await Bun.sleep(pauseMs)
    return undefined
  }

  async function add(client: KeepAliveClient, keyed: boolean): Promise<void> {
    const number = ++made
    const body = animalBody(number)
    const headers = keyed ? { 'Idempotency-Key': `animal-${number}` } : {}
    const send = () => ask(client, { method: 'POST', path: '/v1/pets', headers, body })
    let reply = await send()
    while (!reply && keyed && !isOver()) reply = await send()
    if (!reply) {
      uncertain.add(body)
      return
    }
    const { id, body: kept } = animalOf(reply.text)
    if (kept !== body) seen.wrong.push(`sent ${body}, acknowledged ${reply.text}`)
    if (acknowledged.has(id)) seen.wrong.push(`${id} was given to ${acknowledged.get(id)} and to ${body}`)
    acknowledged.set(id, body)
  }

  async function read(client: KeepAliveClient): Promise<void> {
    await ask(client, { method: 'GET', path: '/v1/pets?limit=5' })
    for (const id of acknowledged.keys().take(1)) await ask(client, { method: 'GET', path: `/v1/pets/${id}` })
  }

  const working = withClients({ port, key, count: clients }, async (client, index) => {
    while (!stopping && !isOver()) {
      await (index % 4 === 3 ? read(client) : add(client, index % 4 !== 2))
    }
  })
  return {
    acknowledged,
    uncertain,
    get wrong() {
      return seen.wrong
    },
    get unavailable() {
      return seen.unavailable
    },
    get slowestMs() {
      return seen.slowestMs
    },
    async stop() {
      stopping = true
      const late = setTimeout(() => {
        gone = true
        seen.wrong.push(`animals were not acknowledged within ${stopMsMax} ms of the end of all trouble`)
      }, stopMsMax)
      await working
      clearTimeout(late)
    },
  }
}

type Sent = Parameters<KeepAliveClient['send']>[0]

/** One request and how long its response took. One that never comes counts as lost. */
export async function timed(client: KeepAliveClient, sent: Sent): Promise<{ outcome: Outcome; ms: number }> {
  const startedAt = performance.now()
  const { promise: hung, resolve } = Promise.withResolvers<Outcome>()
  const timer = setTimeout(resolve, hangMs, { kind: 'lost', received: hangs, requestsBefore: 0 })
  try {
    const outcome = await Promise.race([client.send(sent), hung])
    return { outcome, ms: performance.now() - startedAt }
  } finally {
    clearTimeout(timer)
  }
}

const hangs = 'nothing: it hangs'
const hasHung = (wrong: readonly string[]) => wrong.some(text => text.includes(hangs))

/** What is wrong with a response while the store may be away: it must be the expected one or our own 503, and in time. */
export function problemWith(outcome: Outcome, ms: number, expected: number): string | undefined {
  if (outcome.kind !== 'answered')
    return `${outcome.kind} ${outcome.kind === 'lost' ? outcome.received : ''} after ${ms} ms`
  const { status, text, headers } = outcome.reply
  if (ms > answerMsMax) return `${status} only after ${ms} ms`
  if (status === expected) return undefined
  const { code, message, status: told, ...others } = JSON.parse(text)
  const sound =
    status === 503 &&
    [code, told, typeof message, Object.keys(others).length].join() === 'store_unavailable,503,string,0' &&
    /^[1-9]\d*$/.test(headers.get('retry-after') ?? '') &&
    // Clients do not learn which store it is, nor its address.
    !/postgres|sql|connect|127\.0\.0\.1|timeout|\d{5}/i.test(message)
  return sound ? undefined : `${status} ${text}, Retry-After ${headers.get('retry-after')}`
}

/** The store holds each acknowledged animal once, and nothing that was not sent. */
async function expectEachOnce(load: Load, port: number, key: string): Promise<void> {
  using client = keepAliveClient(port, key)
  const found = await allAnimals(client)
  expect([...load.acknowledged].filter(([id, body]) => found.get(id) !== body)).toEqual([])
  expect(new Set(found.values()).size).toBe(found.size)
  const unexplained = [...found].filter(([id, body]) => !load.acknowledged.has(id) && !load.uncertain.has(body))
  expect(unexplained).toEqual([])
}

/** Waits until /readyz responds with this status. */
export async function readyIs(server: Server, status: 200 | 503, waitMs = 15_000): Promise<void> {
  const asked = async () => {
    const answer = await fetch(new URL('/readyz', server.url), { signal: AbortSignal.timeout(5_000) })
    return answer.status === status || undefined
  }
  await until(`/readyz to say ${status}`, asked, waitMs)
}

/** Waits until clients are served again. */
export async function makesProgress(load: Load, animals = 20): Promise<void> {
  const before = load.acknowledged.size
  await until('more animals', () => load.acknowledged.size >= before + animals || undefined, 15_000)
}

export const key = 'a-key-for-failures-0123456789'
export const drainMs = 2_000
const password = 'nobody-may-read-this-password'

/** The address with a password, which a server that trusts everybody ignores. */
const withPassword = (url: string): string => url.replace('postgres@', `postgres:${password}@`)

/** The program itself on an empty database of its own, both gone with the test. */
export interface Serving extends AsyncDisposable {
  readonly server: Server
  readonly url: string
  readonly port: number
}

export async function serveOn(adminUrl: string, ...flags: string[]): Promise<Serving> {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await newDatabase(adminUrl))
  const serving = stack.use(await serveFrom(url, ...flags))
  const owned = stack.move()
  return { ...serving, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** The same on a database that exists and stays. */
export async function serveFrom(url: string, ...flags: string[]): Promise<Serving> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder())
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: withPassword(url), PETSTORE_DRAIN_TIME: `${drainMs}ms` }
  const args = ['serve', '--port', '0', ...flags]
  const server = stack.use(await startServer({ cwd: folder.path, env, args }))
  const owned = stack.move()
  return { server, url, port: portOf(server), [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** A key in the store itself: the service also records its uses. */
export async function createStoreKey({ url }: Serving): Promise<string> {
  using folder = temporaryFolder()
  const args = ['keys', 'create', '--name', 'till', '--database-url', url]
  return (await petstore(args, { cwd: folder.path })).stdout.trim()
}

/** Clients keep the service busy while something happens to its database. Gives what the service logged. */
export async function underLoad(
  { server, port }: Serving,
  happen: (load: Load, server: Server) => Promise<void>,
): Promise<readonly string[]> {
  const load = startLoad(port, key)
  try {
    await happen(load, server)
  } finally {
    await load.stop()
  }
  expect(load.wrong.slice(0, 5)).toEqual([])
  expect(load.unavailable).toBeGreaterThan(0)
  await expectEachOnce(load, port, key)
  const ended = await server.stop('SIGTERM')
  expect(ended.exitCode).toBe(0)
  expectLoggedWithoutPassword(ended.stderr)
  const logged = loggedBy(ended)
  expect(logged).not.toContain('error internal error')
  return logged
}

export function expectLoggedWithoutPassword(stderr: string): void {
  expect(stderr).toMatch(/"message":"store unavailable".*"cause":"PostgreSQL[: ]/)
  expect(stderr).not.toContain(password)
  expect(stderr).not.toContain(key)
}
