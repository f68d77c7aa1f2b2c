import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { KeepAliveClient, type Outcome, type Reply, type Sent } from '../support/connections.ts'
import { allAnimals, animalOf, inspectStore, Ledger } from '../support/load.ts'
import { startCluster, stopSharedCluster } from '../support/postgres.ts'
import { freePort, program, residentBytes, type Server, startServer, temporaryFolder } from '../support/process.ts'

const usage = `usage: npm run test:soak -- [--minutes 60] [--rate 100] [--seed NUMBER]

Runs two servers on SQLite and two on PostgreSQL under a mixed load. Once a minute, one server of each store is killed
or stopped, and restarted. Exit code 1 if an animal is lost, changed or stored twice, if a response is wrong, or if the
memory or the descriptors of a server that runs throughout grow. Ctrl-C ends the run early, with all checks.

  --minutes   1 to 1440
  --rate      requests per second for each store, 10 to 1000
  --seed      chooses the requests and the moments of the kills`

const key = 'a-key-for-the-soak-0123456789'
const clientsPerServer = 6
const sampleMs = 10_000
/** Beyond this, clients only read, so that disk and memory stay bounded. */
const animalsMax = 300_000
/** The run ends after so many problems. */
const problemsMax = 20
/** Servers end with us, however we end. */
const withUs = Bun.which('setpriv') ? ['setpriv', '--pdeathsig=KILL'] : []

const pets = '/v1/pets'
const badRequests: readonly Request[] = [
  { method: 'GET', path: `${pets}?limit=0`, expected: 400 },
  { method: 'GET', path: `${pets}?cursor=nonsense`, expected: 400 },
  { method: 'GET', path: `${pets}/9223372036854775807`, expected: 404 },
  { method: 'GET', path: '/v1/nothing', expected: 404 },
  { method: 'POST', path: pets, body: '{"name":"","categoryId":1}', expected: 400 },
  { method: 'POST', path: pets, body: '{"name":', expected: 400 },
]

type Request = Sent & { readonly expected?: number }
type Sample = Readonly<Record<'bytes' | 'descriptors' | 'perSecond', number>>

const { minutes, rate, seed } = options()
const problems = new Set<string>()
const ending = new AbortController()
const { signal: over } = ending
/** A server did not come back, so nothing is retried. */
let isHopeless = false

function options(): Record<'minutes' | 'rate' | 'seed', number> {
  const ranges = { minutes: [1, 1440], rate: [10, 1000], seed: [0, 2 ** 32 - 1] } as const
  try {
    const text = { type: 'string' } as const
    const flags = { minutes: text, rate: text, seed: text, help: { type: 'boolean' } } as const
    const {
      help,
      minutes = '60',
      rate = '100',
      seed = String(Date.now() % 2 ** 32),
    } = parseArgs({ options: flags }).values
    if (help) leave(0, usage)
    for (const [name, value] of Object.entries({ minutes, rate, seed })) {
      const [min, max] = ranges[name as keyof typeof ranges]
      if (/^\d+$/.test(value) && Number(value) >= min && Number(value) <= max) continue
      throw new Error(`--${name} is "${value}": expected an integer from ${min} to ${max}`)
    }
    if (process.platform !== 'linux') throw new Error('This run reads /proc: start it on Linux')
    return { minutes: Number(minutes), rate: Number(rate), seed: Number(seed) }
  } catch (error) {
    return leave(2, `${error instanceof Error ? error.message : error}\n\n${usage}`)
  }
}

function leave(exitCode: number, message: string): never {
  const stream = exitCode === 0 ? process.stdout : process.stderr
  stream.write(`${message}\n`)
  process.exit(exitCode)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function report(problem: string): void {
  if (problems.size < problemsMax) problems.add(problem.slice(0, 500))
  if (problems.size === problemsMax) ending.abort()
}

/** Ends early with the run. */
async function pauseUntil(time: number): Promise<void> {
  await sleep(Math.max(0, time - performance.now()), undefined, { signal: over }).catch(() => {})
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomFrom(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A server on a port of its own, in one process after another if it is killed. */
class Target implements AsyncDisposable {
  readonly port = freePort()
  readonly samples: Sample[] = []
  /** Responses by status, and `refused` and `lost` connections. */
  readonly counts: Record<string, number> = {}
  isDown = true
  upAt = 0
  #server: Server | undefined
  #requestsBefore = 0
  readonly #surroundings: { readonly cwd: string; readonly env: Record<string, string> }

  constructor(cwd: string, url: string) {
    this.#surroundings = { cwd, env: { PETSTORE_API_KEY: key, DATABASE_URL: url, PORT: `${this.port}` } }
  }

  async start(): Promise<void> {
    this.#server = await startServer({ ...this.#surroundings, command: [...withUs, program, 'serve'], waitMs: 60_000 })
    this.upAt = performance.now()
    this.isDown = false
  }

  async stop(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.isDown = true
    const ended = await this.#server?.stop(signal)
    if (signal === 'SIGTERM' && ended?.exitCode !== 0) report(`After SIGTERM, the exit code was ${ended?.exitCode}`)
    this.#readLog()
  }

  get requests(): number {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0)
  }

  sample(): void {
    const perSecond = ((this.requests - this.#requestsBefore) * 1_000) / sampleMs
    this.#requestsBefore = this.requests
    if (this.isDown || !this.#server) return
    const { pid } = this.#server
    this.samples.push({ bytes: residentBytes(pid), descriptors: readdirSync(`/proc/${pid}/fd`).length, perSecond })
    this.#readLog()
  }

  /** The log has a line for every request, so lines are dropped after a look at their level. */
  #readLog(): void {
    if (!this.#server) return
    const lines = this.#server.stderr.split('\n')
    this.#server.stderr = lines.pop() ?? ''
    for (const line of lines) if (line.includes('"level":"error"')) report(`A server logged ${line}`)
  }

  /** The mean in a part of the run, such as its last quarter: from 0.75 to 1. */
  mean(what: keyof Sample, from: number, to: number): number {
    const { length } = this.samples
    const part = this.samples.slice(Math.floor(from * length), Math.ceil(to * length))
    return part.reduce((sum, sample) => sum + sample[what], 0) / part.length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }
}

/** A store, its two servers, and what their clients know about it. */
class Catalogue {
  readonly name: string
  readonly killed: Target
  readonly steady: Target
  readonly ledger = new Ledger()
  /** The acknowledged ids, in the order in which they were acknowledged. */
  readonly ids: string[] = []
  readonly signals = { SIGKILL: 0, SIGTERM: 0 }
  retries = 0
  repeats = 0
  walks = 0
  #nextAt = 0

  constructor(name: string, cwd: string, url: string) {
    this.name = name
    this.killed = new Target(cwd, url)
    this.steady = new Target(cwd, url)
  }

  get targets(): readonly [Target, Target] {
    return [this.killed, this.steady]
  }

  /** Waits for the next request of the rate; after a delay, it does not catch up. */
  async turn(): Promise<void> {
    const now = performance.now()
    this.#nextAt = Math.max(this.#nextAt + 1_000 / rate, now)
    await Bun.sleep(this.#nextAt - now)
  }

  report(problem: string): void {
    report(`${this.name}: ${problem}`)
  }

  /** All pages hold the first `known` acknowledged animals unchanged, no animal twice, and none that nobody sent. */
  check(found: ReadonlyMap<string, string>, known = this.ids.length): void {
    const { acknowledged, uncertain, wrong } = this.ledger
    for (const problem of wrong.splice(0)) this.report(problem)
    for (const id of this.ids.slice(0, known)) this.compare(id, found.get(id))
    const bodies = new Set<string>()
    for (const [id, body] of found) {
      if (bodies.has(body)) this.report(`animal ${id} is stored twice: ${body}`)
      bodies.add(body)
      if (!acknowledged.has(id) && !uncertain.has(body)) this.report(`nobody sent animal ${id}: ${body}`)
    }
  }

  /** Compares an animal that was acknowledged. */
  compare(id: string, body: string | undefined): void {
    const sent = this.ledger.acknowledged.get(id)
    if (body !== sent) this.report(`animal ${id} is ${body ? `changed to ${body}` : 'lost'}; it was sent as ${sent}`)
  }

  /** Kills or stops its server once a minute, and then looks for the newest animals and for some others. */
  async disturb(startedAt: number, random: () => number): Promise<void> {
    for (let minute = 0; minute < minutes; minute++) {
      await pauseUntil(startedAt + minute * 60_000 + 5_000 + random() * 45_000)
      if (over.aborted) return
      const signal = random() < 0.2 ? 'SIGTERM' : 'SIGKILL'
      await this.killed.stop(signal)
      this.signals[signal] += 1
      const others = Array.from({ length: 50 }, () => this.ids[Math.floor(random() * this.ids.length)] ?? '1')
      const sample = [...this.ids.slice(-50), ...others]
      await this.killed.start()
      using client = new Client(this, this.killed, random)
      for (const id of sample) await client.get(id)
    }
  }
}

/** One connection to one of the servers. */
class Client extends KeepAliveClient {
  readonly #catalogue: Catalogue
  readonly #target: Target
  readonly #random: () => number
  #answeredAt = performance.now()

  constructor(catalogue: Catalogue, target: Target, random: () => number) {
    super(target.port, key)
    this.#catalogue = catalogue
    this.#target = target
    this.#random = random
  }

  /** At the rate. If a request fails because of a kill and may be retried, it is retried until there is a response. */
  override async send(request: Request): Promise<Outcome> {
    const { method, path, headers, expected = method === 'GET' ? 200 : 201 } = request
    const { killed } = this.#catalogue
    for (;;) {
      await this.#catalogue.turn()
      const outcome = await super.send(request)
      // The connection may be older than the server.
      const isAroundKill = killed.isDown || this.#answeredAt < killed.upAt
      this.#answeredAt = performance.now()
      const kind = outcome.kind === 'answered' ? `${outcome.reply.status}` : outcome.kind
      this.#target.counts[kind] = (this.#target.counts[kind] ?? 0) + 1
      if (kind === `${expected}`) return outcome
      const isExcused = kind === '503' || (outcome.kind !== 'answered' && this.#target === killed)
      if (!isAroundKill || !isExcused) {
        this.#catalogue.report(`${method} ${path}: expected ${expected}, got ${JSON.stringify(outcome)}`)
        return outcome
      }
      if (isHopeless || (method === 'POST' && !headers?.['Idempotency-Key'])) return outcome
      if (method === 'POST') this.#catalogue.retries += 1
    }
  }

  async #ask(request: Request): Promise<Reply | undefined> {
    const outcome = await this.send(request)
    return outcome.kind === 'answered' ? outcome.reply : undefined
  }

  async get(id: string): Promise<void> {
    const reply = await this.#ask({ method: 'GET', path: `${pets}/${id}` })
    if (reply?.status === 200) this.#catalogue.compare(id, animalOf(reply.text).body)
  }

  /** Reads all pages, again and again. */
  async walk(): Promise<void> {
    while (!over.aborted) {
      const known = this.#catalogue.ids.length
      this.#catalogue.check(await allAnimals(this), known)
      this.#catalogue.walks += 1
    }
  }

  async work(): Promise<void> {
    const { ids } = this.#catalogue
    while (!over.aborted) {
      const chosen = this.#random()
      const id = ids[Math.floor(this.#random() * ids.length)]
      const bad = badRequests[Math.floor(this.#random() * badRequests.length)]
      if (chosen < 0.25 && ids.length < animalsMax) await this.#create()
      else if (chosen < 0.35 && bad) await this.send(bad)
      else if (chosen < 0.65 && id) await this.get(id)
      else await this.send({ method: 'GET', path: pets })
    }
  }

  /** Two of three have a key. Some of these are sent once more, and their key with another animal. */
  async #create(): Promise<void> {
    const { ids, ledger } = this.#catalogue
    const { body, idempotencyKey } = ledger.next()
    const headers: Record<string, string> = this.#random() < 0.67 ? { 'Idempotency-Key': idempotencyKey } : {}
    const request = { method: 'POST', path: pets, headers, body } as const
    ledger.uncertain.add(body)
    const reply = await this.#ask(request)
    if (reply?.status !== 201) return
    ledger.acknowledge(body, reply)
    ids.push(animalOf(reply.text).id)
    if (!headers['Idempotency-Key'] || this.#random() < 0.8) return
    this.#catalogue.repeats += 1
    const again = await this.#ask(request)
    if (again?.text !== reply.text) this.#catalogue.report(`sent again, ${reply.text} became ${again?.text}`)
    await this.send({ ...request, body: ledger.next().body, expected: 422 })
  }
}

async function soak(): Promise<number> {
  await using stack = new AsyncDisposableStack()
  stack.defer(stopSharedCluster)
  const folder = stack.use(temporaryFolder()).path
  const cluster = stack.use(await startCluster(['max_wal_size = 256MB']))
  const file = join(folder, 'pets.db')
  const catalogues = [
    new Catalogue('SQLite', folder, `sqlite:${file}`),
    new Catalogue('PostgreSQL', folder, cluster.url()),
  ]
  for (const target of catalogues.flatMap(({ targets }) => targets)) await stack.use(target).start()
  print(`${minutes} minutes, ${rate} requests/s for each store, seed ${seed}. Ctrl-C ends the run. Files: ${folder}`)

  const startedAt = performance.now()
  let seeds = seed
  const load = catalogues.flatMap(catalogue =>
    catalogue.targets.flatMap(target =>
      Array.from({ length: clientsPerServer }, async (_, index) => {
        using client = new Client(catalogue, target, randomFrom(++seeds))
        await (index === 0 ? client.walk() : client.work())
      }),
    ),
  )
  const kills = catalogues.map(catalogue => catalogue.disturb(startedAt, randomFrom(++seeds)))
  const parts = [watch(catalogues, startedAt), ...kills, ...load]
  for (const part of parts) {
    part.catch((error: unknown) => {
      isHopeless = true
      report(`The run ended early: ${error}`)
      ending.abort()
    })
  }
  await Promise.allSettled(parts)
  const minutesRun = (performance.now() - startedAt) / 60_000

  for (const catalogue of catalogues) {
    for (const target of catalogue.targets) {
      using client = new KeepAliveClient(target.port, key)
      const found = await allAnimals(client).catch((error: unknown) => catalogue.report(`${error}`))
      if (found) catalogue.check(found)
    }
    expectNoGrowth(catalogue)
    for (const target of catalogue.targets) if (!target.isDown) await target.stop('SIGTERM')
  }
  const { integrity } = inspectStore(file)
  if (integrity !== 'ok') report(`SQLite: the file is damaged: ${integrity}`)
  print(tableOf(catalogues, minutesRun))
  if (problems.size > 0) print(`\nFailed, with seed ${seed}:\n${[...problems].join('\n')}`)
  return problems.size > 0 ? 1 : 0
}

/** Samples every server, prints a line each minute, and ends the run. */
async function watch(catalogues: readonly Catalogue[], startedAt: number): Promise<void> {
  for (let count = 0; count <= (minutes * 60_000) / sampleMs; count++) {
    await pauseUntil(startedAt + count * sampleMs)
    if (over.aborted) return
    for (const { targets } of catalogues) for (const target of targets) target.sample()
    if (count > 0 && (count * sampleMs) % 60_000 === 0) print(progressOf(catalogues, (count * sampleMs) / 60_000))
  }
  ending.abort()
}

/** Compares the second with the last quarter. In less than a minute, servers still warm up. */
function expectNoGrowth({ name, steady }: Catalogue): void {
  if (steady.samples.length < 60_000 / sampleMs) return
  const quarters = (what: keyof Sample) => [steady.mean(what, 0.25, 0.5), steady.mean(what, 0.75, 1)] as const
  const [bytes, bytesEnd] = quarters('bytes')
  if (bytesEnd > 1.5 * bytes) report(`${name}: memory grew from ${megabytes(bytes)} to ${megabytes(bytesEnd)}`)
  const [open, openEnd] = quarters('descriptors')
  const poolSize = name === 'SQLite' ? 0 : 12
  if (openEnd > open + poolSize + 2)
    report(`${name}: descriptors grew from ${open.toFixed(1)} to ${openEnd.toFixed(1)}`)
}

const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`
const grouped = (number: number) => number.toLocaleString('en')

function failuresOf(targets: readonly Target[]): string {
  const count = (kind: string) => grouped(targets.reduce((sum, { counts }) => sum + (counts[kind] ?? 0), 0))
  return `${count('503')} with 503, ${count('lost')} lost, ${count('refused')} refused`
}

function progressOf(catalogues: readonly Catalogue[], minute: number): string {
  const states = catalogues.map(({ name, ids, signals, targets }) => {
    const servers = targets.map(({ samples }) => {
      const { bytes, descriptors, perSecond } = samples.at(-1) ?? { bytes: 0, descriptors: 0, perSecond: 0 }
      return `${perSecond.toFixed(0)}/s ${megabytes(bytes)} ${descriptors} descriptors`
    })
    const stops = `${signals.SIGKILL} kills, ${signals.SIGTERM} stops`
    return `${name}: ${grouped(ids.length)} animals, ${stops}, ${failuresOf(targets)}, ${servers.join(' and ')}`
  })
  return `minute ${minute}: ${states.join('; ')}; ${problems.size} problems`
}

function tableOf(catalogues: readonly Catalogue[], minutesRun: number): string {
  const change = (target: Target, [from, to]: readonly [number, number], last: number) => {
    const bytes = [target.mean('bytes', from, to), target.mean('bytes', last, 1)].map(megabytes)
    const open = [target.mean('descriptors', from, to), target.mean('descriptors', last, 1)]
    return `${bytes.join(' → ')}; ${open.map(value => value.toFixed(1)).join(' → ')}`
  }
  const rows: Record<string, (catalogue: Catalogue) => string> = {
    Requests: ({ targets: [killed, steady] }) => grouped(killed.requests + steady.requests),
    '`kill -9`; stops with SIGTERM': ({ signals }) => `${signals.SIGKILL}; ${signals.SIGTERM}`,
    'Failed requests, all around a kill or stop': ({ targets }) => failuresOf(targets),
    'Animals acknowledged': ({ ids }) => grouped(ids.length),
    'Retries of creations under their key; repeated creations': ({ retries, repeats }) =>
      `${grouped(retries)}; ${grouped(repeats)}`,
    'Walks over all pages': ({ walks }) => grouped(walks),
    'Steady server, second → last quarter: memory; descriptors': ({ steady }) => change(steady, [0.25, 0.5], 0.75),
    'Steady server, first → last tenth': ({ steady }) => change(steady, [0, 0.1], 0.9),
    'Killed server, first → last tenth': ({ killed }) => change(killed, [0, 0.1], 0.9),
    'Animals lost, changed, duplicated or never sent; wrong responses': () => (problems.size === 0 ? '0' : 'see below'),
  }
  const lines = Object.entries(rows).map(([title, show]) => [title, ...catalogues.map(show)])
  const head = [
    `${Number(minutesRun.toFixed(1))} minutes, ${rate} requests/s per store`,
    ...catalogues.map(({ name }) => name),
  ]
  return ['', ...[head, ['---', '---', '---'], ...lines].map(cells => `| ${cells.join(' | ')} |`)].join('\n')
}

process.on('SIGINT', () => ending.abort()).on('SIGTERM', () => ending.abort())
try {
  process.exitCode = await soak()
} catch (error) {
  leave(2, `The run could not start: ${error instanceof Error ? error.message : error}`)
}
