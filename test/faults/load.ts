import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { KeepAliveClient, type Outcome, type Reply, type Sent, withClients } from '../support/connections.ts'
import { hangMs, loggedBy, startServer, temporaryFolder, until } from '../support/process.ts'

const oddNames = [
  ...['Ünïcødé', 'e\u0301 and \u00e9', '🐕‍🦺 🏳️‍🌈', '\u202eright to left', 'שלום — السلام', '\u2028line\u2029paragraph'],
  ...['𝒳 \u{10ffff}', '"quoted" \\ back / slash', '\u0001\t\n\r\u007f', '\ufeffmark \ufffd', "'); DROP TABLE pets;--"],
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

/** Lines as export writes them, with odd names, every status and none, and ids with gaps that reach beyond 2^53. */
export function animalLines(count: number, firstId = 2n ** 53n - 5n): string {
  const line = (_: unknown, i: number) => `{"id":${firstId + BigInt(i) * 3n},${animalBody(i).slice(1)}\n`
  return Array.from({ length: count }, line).join('')
}

/** A Pet as text, split without reading its numbers. */
export function readAnimal(text: string): { readonly id: string; readonly body: string } {
  const [, id, rest] = /^\{"id":(\d+),(.*\})$/s.exec(text) ?? []
  if (id === undefined) throw new Error(`Not an animal: ${text}`)
  return { id, body: `{${rest}` }
}

/** The animals of a page. Inside a name the quotes have backslashes, so this splits only between animals. */
export function readAnimals(page: string): readonly ReturnType<typeof readAnimal>[] {
  const texts = page.slice(1, -1).split(/,(?=\{"id":)/)
  return texts.filter(Boolean).map(readAnimal)
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
    for (const { id, body } of readAnimals(outcome.reply.text)) {
      if (found.has(id)) throw new Error(`Two animals have id ${id}`)
      found.set(id, body)
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

/** What clients know about the animals that they have sent, and what the store must therefore hold. */
export class Ledger {
  /** The animals that were answered with 201, by their ids. */
  readonly acknowledged = new Map<string, string>()
  /** Sent without a key and without success: each may be stored, but not twice. */
  readonly uncertain = new Set<string>()
  /** Responses that no client should get. */
  readonly wrong: string[] = []
  /** Shared, because the clients of one store may have several ledgers and need different animals. */
  static #made = 0

  /** The next animal to send, and an Idempotency-Key for it. */
  next(): { readonly body: string; readonly idempotencyKey: string } {
    const number = ++Ledger.#made
    return { body: animalBody(number), idempotencyKey: `animal-${number}` }
  }

  acknowledge(body: string, { status, text }: Reply): void {
    if (status !== 201) return void this.wrong.push(`${status} ${text}`)
    const animal = readAnimal(text)
    if (animal.body !== body) this.wrong.push(`sent ${body}, acknowledged ${text}`)
    this.#record(animal.id, body)
  }

  #record(id: string, body: string): void {
    const other = this.acknowledged.get(id)
    if (other !== undefined) this.wrong.push(`${id} was given to ${other} and to ${body}`)
    this.acknowledged.set(id, body)
  }

  /** Adds what other clients of the same store know. */
  include({ acknowledged, uncertain, wrong }: Ledger): void {
    for (const [id, body] of acknowledged) this.#record(id, body)
    for (const body of uncertain) this.uncertain.add(body)
    this.wrong.push(...wrong)
  }

  /** The store holds each acknowledged animal once, and nothing that was not sent. Gives all that it holds. */
  async expectEachOnce(client: KeepAliveClient): Promise<Map<string, string>> {
    const found = await allAnimals(client)
    expect(this.wrong.slice(0, 5)).toEqual([])
    expect([...this.acknowledged].filter(([id, body]) => found.get(id) !== body)).toEqual([])
    expect(new Set(found.values()).size).toBe(found.size)
    const unexplained = [...found].filter(([id, body]) => !this.acknowledged.has(id) && !this.uncertain.has(body))
    expect(unexplained).toEqual([])
    return found
  }
}

/** Clients that go on through any trouble: of four, two add animals under a key, one adds without, one reads. */
export class Load extends Ledger {
  unavailable = 0
  /** The longest time between two acknowledged animals. Set it to 0 to measure from here on. */
  longestPauseMs = 0
  #lists = 0
  #acknowledgedAt = performance.now()
  #stopping = false
  /** The service is away for good: no client goes on. */
  #gone = false
  readonly #working: Promise<unknown>
  readonly #count: number
  readonly #headers: Record<string, string>

  /** Each client waits for `restMs` after every request. */
  constructor(port: number, key: string, count = 16, { restMs = 10, headers = {} } = {}) {
    super()
    this.#headers = headers
    this.#count = count
    this.#working = withClients({ port, key, count }, async (client, index) => {
      while (!this.#stopping && !this.#gone) {
        await (index % 4 === 3 ? this.#read(client) : this.#add(client, index % 4 !== 2))
        await Bun.sleep(restMs)
      }
    })
  }

  async #ask(client: KeepAliveClient, sent: Sent): Promise<Reply | undefined> {
    const outcome = await client.send({ ...sent, headers: { ...this.#headers, ...sent.headers } })
    const problem = problemIn(outcome, sent.method === 'POST' ? 201 : 200)
    if (problem !== undefined) this.wrong.push(`${sent.method} ${sent.path}: ${problem}`)
    if (outcome.kind !== 'answered') this.#gone = true
    if (outcome.kind === 'answered' && outcome.reply.status < 300) return outcome.reply
    this.unavailable += 1
    await Bun.sleep(50)
    return undefined
  }

  async #add(client: KeepAliveClient, keyed: boolean): Promise<void> {
    const { body, idempotencyKey } = this.next()
    const headers = keyed ? { 'Idempotency-Key': idempotencyKey } : {}
    const send = () => this.#ask(client, { method: 'POST', path: '/v1/pets', headers, body })
    let reply = await send()
    while (!reply && keyed && !this.#gone) reply = await send()
    if (!reply) return void this.uncertain.add(body)
    this.acknowledge(body, reply)
    const now = performance.now()
    this.longestPauseMs = Math.max(this.longestPauseMs, now - this.#acknowledgedAt)
    this.#acknowledgedAt = now
  }

  async #read(client: KeepAliveClient): Promise<void> {
    if (await this.#ask(client, { method: 'GET', path: '/v1/pets?limit=5' })) this.#lists++
    for (const id of this.acknowledged.keys().take(1)) {
      await this.#ask(client, { method: 'GET', path: `/v1/pets/${id}` })
    }
  }

  /** Waits until clients are served again. PostgreSQL may take writes before it takes reads, on other connections. */
  async makesProgress(animals = 20): Promise<void> {
    const [before, listsBefore] = [this.acknowledged.size, this.#lists]
    await until('more animals and a list', () => {
      if (this.#gone) throw new Error(`The load has ended: ${this.wrong[0]}`)
      return (this.acknowledged.size >= before + animals && this.#lists > listsBefore) || undefined
    })
  }

  /** Waits until one more request has failed. */
  async getsUnavailable(): Promise<void> {
    const before = this.unavailable
    await until('a failed request', () => this.unavailable > before || undefined)
  }

  /** nginx repeats no creation that it sent while an instance closed its port: for two restarts, the clients do. */
  async expectEachOnceBehindNginx(client: KeepAliveClient): Promise<void> {
    const isRepeated = (each: string) => /^POST \/v1\/pets: 502 .*"bad_gateway".*Retry-After 1$/.test(each)
    expect(this.wrong.filter(each => !isRepeated(each))).toEqual([])
    expect(this.wrong.length).toBeLessThanOrEqual(2 * this.#count)
    this.wrong.length = 0
    await this.expectEachOnce(client)
  }

  /** Adds nothing new, and waits until every animal that was sent under a key is acknowledged. */
  async stop(): Promise<void> {
    this.#stopping = true
    const late = setTimeout(() => {
      this.#gone = true
      this.wrong.push('animals were not acknowledged after the end of all trouble')
    }, hangMs)
    await this.#working
    clearTimeout(late)
  }
}

/**
 * Four other clients read and add during an attack, and get only their own results. `stored` are the animals that the
 * store had before.
 */
export async function expectOthersServed(
  { port, key, stored = [] }: { readonly port: number; readonly key: string; readonly stored?: readonly string[] },
  attack: (load: Load) => Promise<void>,
): Promise<void> {
  const load = new Load(port, key, 4)
  for (const body of stored) load.uncertain.add(body)
  await load.makesProgress()
  await attack(load)
  await load.stop()
  expect([load.wrong, load.unavailable]).toEqual([[], 0])
  using client = new KeepAliveClient(port, key)
  await load.expectEachOnce(client)
}

/** What is wrong with a response while the store may be away: it must be the expected one or our own 503. */
export function problemIn(outcome: Outcome, expected: number | undefined): string | undefined {
  if (outcome.kind !== 'answered') return JSON.stringify(outcome)
  const { status, text, headers } = outcome.reply
  if (status === expected) return undefined
  const error = JSON.parse(text)
  const message = String(error.message)
  const sound =
    status === 503 &&
    Bun.deepEquals(error, { code: 'store_unavailable', message, status }, true) &&
    /^[1-9]\d*$/.test(headers.get('retry-after') ?? '') &&
    // Clients do not learn which store it is, nor its address.
    !/postgres|sql|connect|127\.0\.0\.1|timeout|\d{5}/i.test(message)
  return sound ? undefined : `${status} ${text}, Retry-After ${headers.get('retry-after')}`
}

export const key = 'a-key-for-failures-0123456789'
const password = 'nobody-may-read-this-password'

export type Serving = Awaited<ReturnType<typeof serveFrom>>

/** A server on a database that exists and stays. */
export async function serveFrom(url: string, ...flags: string[]) {
  // A server that trusts everybody ignores the password.
  const withPassword = url.replace('//postgres@', `//postgres:${password}@`)
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: withPassword, PETSTORE_DRAIN_TIME: '2s' }
  const server = await startServer({ env, args: ['serve', '--port', '0', ...flags] })

  return Object.assign(server, {
    /** Waits until /healthz responds with this status. */
    healthIs: (status: 200 | 503) =>
      until(`/healthz to say ${status}`, async () => {
        const answer = await fetch(new URL('/healthz', server.url))
        return answer.status === status || undefined
      }),
    /**
     * Clients keep the service busy while something happens to its database. Gives what the service logged: this cause, and
     * neither the password nor the key.
     */
    async underLoad(cause: RegExp, happen: (load: Load) => Promise<void>): Promise<readonly string[]> {
      const load = new Load(server.port, key)
      await happen(load).finally(() => load.stop())
      expect(load.unavailable).toBeGreaterThan(0)
      using client = new KeepAliveClient(server.port, key)
      await load.expectEachOnce(client)
      const ended = await server.stop('SIGTERM')
      const { exitCode, stderr } = ended
      expect(exitCode).toBe(0)
      const lines = /"message":"store unavailable".*"cause":"([^";]*)/g
      const causes = stderr.matchAll(lines).map(([, each]) => each)
      expect([...new Set(causes)]).toContainEqual(expect.stringMatching(cause))
      for (const secret of [password, key]) expect(stderr).not.toContain(secret)
      const logged = loggedBy(ended)
      expect(logged).not.toContain('error internal error')
      return logged
    },
  })
}
