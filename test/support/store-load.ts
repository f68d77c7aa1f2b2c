import { expect } from 'bun:test'
import { allAnimals, animalBody, animalOf } from './animals.ts'
import { type KeepAliveClient, keepAliveClient, type Outcome, type Reply, withClients } from './keep-alive.ts'
import { type Server, until } from './process.ts'

/** A store that hangs is given up after 5 s; the rest is for a machine that is busy with other tests. */
export const answerMsMax = 6_500

/** Longer than this is a hang, and nobody waits for it any more. */
const hangMs = 20_000

/** What is under way when the trouble is over has come to its end by then. */
const stopMsMax = 15_000

const pauseMs = 50

/** Clients that go on through any trouble: what they were told, and what therefore has to be in the store. */
export interface Load {
  /** The animals that were answered with 201, by their ids. */
  readonly acknowledged: Map<string, string>
  /** Sent without a key and answered with 503: each may be in the store, but not twice. */
  readonly uncertain: Set<string>
  /** Answers that nobody should get. */
  readonly wrong: string[]
  readonly unavailable: number
  readonly slowestMs: number
  /** Adds nothing new, and waits until every animal that was sent under a key is acknowledged. */
  stop(): Promise<void>
}

export const portOf = ({ url }: Pick<Server, 'url'>): number => Number(new URL(url).port)

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
    // Nobody listens any more: the service itself has ended.
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

/** One request and how long its answer took. One that never comes counts as lost. */
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

/** What is wrong with an answer while the store may be away: it is the one expected or our own 503, and in time. */
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
    // Nobody outside needs to know what the store is made of, nor where it is.
    !/postgres|sql|connect|127\.0\.0\.1|timeout|\d{5}/i.test(message)
  return sound ? undefined : `${status} ${text}, Retry-After ${headers.get('retry-after')}`
}

/** The store holds each acknowledged animal, each once, and nothing but what was sent. */
export async function expectEachOnce(load: Load, port: number, key: string): Promise<void> {
  using client = keepAliveClient(port, key)
  const found = await allAnimals(client)
  expect([...load.acknowledged].filter(([id, body]) => found.get(id) !== body)).toEqual([])
  expect(new Set(found.values()).size).toBe(found.size)
  const unexplained = [...found].filter(
    ([id, body]) => !load.acknowledged.has(id) && !load.uncertain.has(body),
  )
  expect(unexplained).toEqual([])
}

/** Waits until /readyz says 200, or 503. */
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
