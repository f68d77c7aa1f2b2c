import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync, statSync, writeFileSync } from 'node:fs'
import { workplace } from '../cli/workplace.ts'
import { KeepAliveClient, type Sent, withClients } from '../support/connections.ts'
import { startServer, until } from '../support/process.ts'
import { allAnimals, animalLines, inspectStore, key, Ledger, problemIn, readAnimals } from './load.ts'

const rounds = Number(process.env['PETSTORE_TEST_RESTORE_ROUNDS'] ?? 3)
/** Batches of 10,000 and 1,000 animals, and four statements for the rest. */
const manyAnimals = 11_000
const lastBatch = 6
/** With many of these, SQLite fills its cache and writes animals to the log before COMMIT. */
const longName = '-'.repeat(900)

/** Kills after this batch; or, when the held restore continues from its last batch, as soon as this file changes. */
const moments = [lastBatch, 'pets.db-wal', 'pets.db', 1, 2] as const

type Animals = ReadonlyMap<string, string>

/** Makes the backup NAME.db. */
async function makeBackup(name: string, firstId: bigint) {
  const lines = animalLines(manyAnimals, firstId).replaceAll('"name":"', `"name":"${name} ${longName}`)
  writeFileSync(prepared.file(name), lines)
  const made = await prepared.petstore('import', '--keep-ids', name, '--database-url', `sqlite:${name}.db`)
  expect(made).toMatchObject({ exitCode: 0 })
  const animals = readAnimals(`[${lines.trimEnd().replaceAll('\n', ',')}]`)
  return { file: `${name}.db`, animals: new Map(animals.map(({ id, body }) => [id, body])) as Animals }
}

const prepared = workplace('')
let older: Awaited<ReturnType<typeof makeBackup>>
let newer: typeof older
// They have no id in common.
beforeAll(async () => {
  ;[older, newer] = await Promise.all([makeBackup('old', 1n), makeBackup('new', 2n)])
})
afterAll(() => prepared[Symbol.dispose]())

/** A folder with copies of both backups, and a server on another copy of old.db. */
async function restoring() {
  await using stack = new AsyncDisposableStack()
  const place = stack.use(workplace(''))
  for (const file of [older.file, newer.file]) copyFileSync(prepared.file(file), place.file(file))
  copyFileSync(prepared.file(older.file), place.file('pets.db'))
  const start = () => startServer({ cwd: place.path, env: { PETSTORE_API_KEY: key, DATABASE_URL: 'sqlite:pets.db' } })
  const server = stack.use(await start())
  const client = stack.use(new KeepAliveClient(server.port, key))
  return Object.assign(stack.move(), { place, start, server, client })
}

function expectAnimals(found: Animals, ...expected: Iterable<readonly [string, string]>[]): void {
  const wanted = new Map(expected.flatMap(each => [...each]))
  const missing = [...wanted].filter(([id]) => !found.has(id))
  const wrong = [...found].filter(([id, body]) => wanted.get(id) !== body)
  // The first few: there may be thousands.
  expect({ missing: missing.slice(0, 3), wrong: wrong.slice(0, 3) }).toEqual({ missing: [], wrong: [] })
}

/** Seven clients add animals and one reads, until stopped. A POST may be 503 while the store is locked; a read may not. */
function load(port: number, ledger: Ledger) {
  const path = '/v1/pets'
  let isOver = false
  const working = withClients({ port, key, count: 8 }, async (client, index) => {
    while (!isOver) {
      const { body } = ledger.next()
      const sent: Sent = index === 0 ? { method: 'GET', path } : { method: 'POST', path, body }
      const outcome = await client.send(sent)
      const reply = outcome.kind === 'answered' ? outcome.reply : undefined
      if (index === 0) expect(reply?.status).toBe(200)
      else if (reply?.status === 201) ledger.acknowledge(body, reply)
      else expect(problemIn(outcome, 201)).toBeUndefined()
    }
  })
  return {
    async stop() {
      isOver = true
      await working
    },
    makesProgress() {
      const wanted = ledger.acknowledged.size + 50
      return until('more animals', () => ledger.acknowledged.size >= wanted || undefined)
    },
  }
}

test(`after each of ${rounds} kill -9 of a restore, clients find the old catalogue or the backup, and what they added since`, async () => {
  await using all = await restoring()
  const { place, server, client } = all
  const ledger = new Ledger()
  let known = older.animals
  for (let round = 0; round < rounds; round++) {
    const moment = moments[round % moments.length] ?? 1
    const backup = round % 2 === 0 ? newer : older
    const firstOfRound = ledger.acknowledged.size
    const clients = load(server.port, ledger)
    await clients.makesProgress()

    const batch = typeof moment === 'number' ? moment : lastBatch
    await using restore = await place.startHeld(['restore', '--yes', backup.file], batch)
    const before = await allAnimals(client)
    if (typeof moment === 'string') {
      const changedAt = () => statSync(place.file(moment), { bigint: true }).mtimeNs
      const heldSince = changedAt()
      restore.kill('SIGUSR2')
      while (changedAt() === heldSince) await new Promise(setImmediate)
    }
    restore.kill('SIGKILL')
    await restore.exited
    await clients.makesProgress()
    await clients.stop()

    // No id is acknowledged twice.
    expect(ledger.wrong.slice(0, 3)).toEqual([])
    const acknowledged = [...ledger.acknowledged].slice(firstOfRound)
    const later = acknowledged.filter(([id]) => !before.has(id))
    expectAnimals(
      before,
      known,
      acknowledged.filter(([id]) => before.has(id)),
    )
    const after = await allAnimals(client)
    const [anyId = ''] = backup.animals.keys()
    // Only a checkpoint, which follows COMMIT, changes the file itself.
    const isRestored = moment === 'pets.db' || (moment === 'pets.db-wal' && after.has(anyId))
    expectAnimals(after, later, isRestored ? backup.animals : before)
    expect(inspectStore(place.file('pets.db'))).toEqual({ integrity: 'ok', animals: after.size })

    expect(await place.petstore('restore', '--yes', backup.file)).toMatchObject({ exitCode: 0 })
    expect(inspectStore(place.file('pets.db'))).toEqual({ integrity: 'ok', animals: manyAnimals })
    known = backup.animals
  }
})

test('a server killed and started again during a restore serves the old catalogue, and goes on after the restore', async () => {
  await using all = await restoring()
  await using restore = await all.place.startHeld(['restore', '--yes', newer.file], 2)
  await all.server.stop('SIGKILL')
  await using server = await all.start()
  using client = new KeepAliveClient(server.port, key)
  expectAnimals(await allAnimals(client), older.animals)
  restore.kill('SIGUSR2')
  expect(await restore.exited).toBe(0)
  const ledger = new Ledger()
  const clients = load(server.port, ledger)
  await clients.makesProgress()
  await clients.stop()
  expectAnimals(await allAnimals(client), ledger.acknowledged, newer.animals)
})
