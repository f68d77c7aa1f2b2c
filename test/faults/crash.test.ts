import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { allAnimals, animalBody, animalOf } from '../support/animals.ts'
import { temporaryFolder } from '../support/folder.ts'
import { type KeepAliveClient, keepAliveClient, type Reply, withClients } from '../support/keep-alive.ts'
import { startServer } from '../support/process.ts'
import { inspectStore } from '../support/store-file.ts'

const rounds = Number(process.env['PETSTORE_TEST_CRASH_ROUNDS'] ?? 20)
const clients = 32
const key = 'a-key-for-crashes-0123456789'

/** A creation that a client has sent: half of them under an Idempotency-Key. */
interface Creation {
  readonly body: string
  readonly idempotencyKey?: string
}

/** What the clients know, and what therefore has to be in the store whatever happens to the server. */
function createLedger() {
  let made = 0
  const sent = new Set<string>()
  const acknowledged = new Map<string, string>()
  return {
    acknowledged,
    /** What the last walk through all pages has shown: that must not vanish either. */
    listed: new Map<string, string>(),
    sent,
    /** Keyed creations without an answer: they may be in the store or not. */
    unanswered: [] as Creation[],
    next(keyed: boolean): Creation {
      made += 1
      const body = animalBody(made)
      sent.add(body)
      return keyed ? { body, idempotencyKey: `creation-${made}` } : { body }
    },
    acknowledge({ body }: Creation, reply: Reply): void {
      expect([reply.status, reply.text]).toEqual([201, expect.any(String)])
      const { id, body: kept } = animalOf(reply.text)
      expect(kept).toBe(body)
      if (acknowledged.has(id)) throw new Error(`Id ${id} was given twice: ${acknowledged.get(id)}, ${body}`)
      acknowledged.set(id, body)
    },
  }
}

type Ledger = ReturnType<typeof createLedger>

function send(client: KeepAliveClient, { body, idempotencyKey }: Creation) {
  const headers = idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }
  return client.send({ method: 'POST', path: '/v1/pets', headers, body })
}

/** Creates one animal after another until the server is gone. */
async function createUntilGone(client: KeepAliveClient, ledger: Ledger, keyed: boolean): Promise<void> {
  for (;;) {
    const creation = ledger.next(keyed)
    const outcome = await send(client, creation)
    if (outcome.kind === 'answered') ledger.acknowledge(creation, outcome.reply)
    else {
      if (keyed) ledger.unanswered.push(creation)
      return
    }
  }
}

/** Sends what got no answer once more, under the same key. Gives how many had been kept without an answer. */
async function sendAgain(client: KeepAliveClient, ledger: Ledger): Promise<number> {
  let replayed = 0
  for (const creation of ledger.unanswered.splice(0)) {
    const outcome = await send(client, creation)
    if (outcome.kind !== 'answered') throw new Error(`No answer to ${creation.idempotencyKey}`)
    if (outcome.reply.headers.get('idempotency-replayed') === 'true') replayed += 1
    ledger.acknowledge(creation, outcome.reply)
  }
  return replayed
}

async function expectNothingLost(client: KeepAliveClient, ledger: Ledger): Promise<void> {
  const { acknowledged, listed, sent } = ledger
  const found = await allAnimals(client)
  const lost = [...acknowledged, ...listed].filter(([id, body]) => found.get(id) !== body)
  expect(lost).toEqual([])
  const bodies = new Set(found.values())
  // Every animal was sent for once, or again under its key: two of them alike would be one that was doubled.
  expect(bodies.size).toBe(found.size)
  expect([...bodies].filter(body => !sent.has(body))).toEqual([])
  ledger.listed = found
}

test(
  `after each of ${rounds} kill -9 under ${clients} writing clients, every acknowledged animal is there once, as it was acknowledged`,
  async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: `sqlite:${file}` }
    const ledger = createLedger()
    let replayed = 0

    for (let round = 0; round <= rounds; round++) {
      await using server = await startServer({ cwd: folder.path, env })
      const port = Number(new URL(server.url).port)
      using checking = keepAliveClient(port, key)
      replayed += await sendAgain(checking, ledger)
      await expectNothingLost(checking, ledger)
      if (round === rounds) break

      const before = ledger.acknowledged.size
      const writing = withClients({ port, key, count: clients }, (client, index) =>
        createUntilGone(client, ledger, index % 2 === 0),
      )
      await Bun.sleep(50 + Math.random() * 200)
      await server.stop('SIGKILL')
      await writing
      expect(ledger.acknowledged.size).toBeGreaterThan(before)
      expect(inspectStore(file).integrity).toBe('ok')
    }
    const { size } = ledger.acknowledged
    process.stdout.write(
      `${rounds} kills, ${size} animals acknowledged, ${replayed} kept without an answer\n`,
    )
  },
  rounds * 3_000 + 10_000,
)
