import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { type KeepAliveClient, keepAliveClient, type Reply, withClients } from '../support/connections.ts'
import { allAnimals, animalBody, animalOf, inspectStore } from '../support/load.ts'
import { portOf, startServer, temporaryFolder, testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const rounds = Number(process.env['PETSTORE_TEST_CRASH_ROUNDS'] ?? 10)
const clients = 32
const key = 'a-key-for-crashes-0123456789'

/** A creation that a client has sent: half of them under an Idempotency-Key. */
interface Creation {
  readonly body: string
  readonly idempotencyKey?: string
}

/** What the clients know, and what the store must therefore hold. */
function createLedger() {
  let made = 0
  const sent = new Set<string>()
  const acknowledged = new Map<string, string>()
  return {
    acknowledged,
    /** The animals that the last walk through all pages showed: they must not vanish either. */
    listed: new Map<string, string>(),
    sent,
    /** Keyed creations without a response: each may be stored or not. */
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

/** Repeats the requests that got no response, under the same keys. */
async function sendAgain(client: KeepAliveClient, ledger: Ledger): Promise<void> {
  for (const creation of ledger.unanswered.splice(0)) {
    const outcome = await send(client, creation)
    if (outcome.kind !== 'answered') throw new Error(`No answer to ${creation.idempotencyKey}`)
    ledger.acknowledge(creation, outcome.reply)
  }
}

async function expectNothingLost(client: KeepAliveClient, ledger: Ledger): Promise<void> {
  const { acknowledged, listed, sent } = ledger
  const found = await allAnimals(client)
  const lost = [...acknowledged, ...listed].filter(([id, body]) => found.get(id) !== body)
  expect(lost).toEqual([])
  const bodies = new Set(found.values())
  // Every animal was sent once, or again under its key: two equal ones would be one stored twice.
  expect(bodies.size).toBe(found.size)
  expect([...bodies].filter(body => !sent.has(body))).toEqual([])
  ledger.listed = found
}

test(
  `after each of ${rounds} kill -9 under ${clients} writing clients, every acknowledged animal is stored once, as it was acknowledged`,
  async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: `sqlite:${file}` }
    const ledger = createLedger()

    for (let round = 0; round <= rounds; round++) {
      await using server = await startServer({ cwd: folder.path, env })
      const port = portOf(server)
      using checking = keepAliveClient(port, key)
      await sendAgain(checking, ledger)
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
  },
  rounds * 3_000 + 10_000,
)
