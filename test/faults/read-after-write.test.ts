import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { writeCursor } from '../../src/page.ts'
import { KeepAliveClient, withClients } from '../support/connections.ts'
import { inspectStore, Ledger } from '../support/load.ts'
import { startServer, temporaryFolder } from '../support/process.ts'

const clients = 32
const creations = 50
const key = 'a-key-for-reads-0123456789'

async function text(client: KeepAliveClient, path: string, body?: string): Promise<string> {
  const sent = body === undefined ? { method: 'GET' as const } : { method: 'POST' as const, body }
  const outcome = await client.send({ ...sent, path })
  return outcome.kind === 'answered' ? outcome.reply.text : outcome.kind
}

test.concurrent.each([
  { processes: 1, pauseMs: 0 },
  // After a pause, the reads of an event-loop tick share a transaction.
  { processes: 1, pauseMs: 150 },
  { processes: 2, pauseMs: 150 },
])('a read that starts after a 201 sees the animal, with %j', async ({ processes, pauseMs }) => {
  using folder = temporaryFolder()
  const start = () => startServer({ cwd: folder.path, env: { PETSTORE_API_KEY: key } })
  await using writing = await start()
  await using other = processes === 2 ? await start() : undefined
  using writer = new KeepAliveClient(writing.port, key)
  using readers = new DisposableStack()
  const { port } = other ?? writing
  const reading = Array.from({ length: clients }, () => readers.use(new KeepAliveClient(port, key)))
  let created = { pet: '', id: 0n, before: 0n }
  const stale: string[] = []
  const read = async (reader: KeepAliveClient, index: number) => {
    // Created before this read starts.
    const { pet, id, before } = created
    const path = index % 2 === 0 ? `/v1/pets/${id}` : `/v1/pets?cursor=${writeCursor(before, undefined)}`
    const seen = await text(reader, path)
    if (!seen.includes(pet)) stale.push(`${pet} is not in ${seen}`)
  }
  for (let creation = 0; creation < creations; creation++) {
    await Bun.sleep(pauseMs)
    // All clients read while the animal is added, and once more after that.
    let done = false
    const readUntilDone = reading.map(async (reader, index) => {
      while (!done) await read(reader, index)
      await read(reader, index)
    })
    const pet = await text(writer, '/v1/pets', '{"name":"Rex","categoryId":1}')
    created = { pet, id: BigInt(JSON.parse(pet).id), before: created.id }
    done = true
    await Promise.all(readUntilDone)
  }
  expect(stale).toEqual([])
})

test('3,000 animals, added by 32 clients of each of two processes, are read from the other one at once', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'pets.db')
  const options = { cwd: folder.path, env: { PETSTORE_API_KEY: key, DATABASE_URL: `sqlite:${file}` } }
  await using first = await startServer(options)
  await using second = await startServer(options)
  const ledger = new Ledger()
  const unseen: string[] = []
  const write = (port: number, otherPort: number) =>
    withClients({ port, key, count: clients }, async client => {
      using other = new KeepAliveClient(otherPort, key)
      while (ledger.acknowledged.size < 3_000) {
        const { body } = ledger.next()
        const created = await client.send({ method: 'POST', path: '/v1/pets', body })
        if (created.kind !== 'answered') throw new Error(`no response: ${JSON.stringify(created)}`)
        // Notes any response but 201, such as 503.
        ledger.acknowledge(body, created.reply)
        const seen = await text(other, created.reply.headers.get('location') ?? '')
        if (seen !== created.reply.text) unseen.push(`${created.reply.text}: ${seen}`)
      }
    })
  await Promise.all([write(first.port, second.port), write(second.port, first.port)])
  expect(unseen.slice(0, 5)).toEqual([])
  using checking = new KeepAliveClient(second.port, key)
  await ledger.expectEachOnce(checking)

  for (const server of [first, second]) expect((await server.stop('SIGTERM')).exitCode).toBe(0)
  // The last one has moved the write-ahead log into the file.
  expect(existsSync(`${file}-wal`)).toBe(false)
  expect(inspectStore(file)).toEqual({ integrity: 'ok', animals: ledger.acknowledged.size })
})
