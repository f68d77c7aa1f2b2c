import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { KeepAliveClient, withClients } from '../support/connections.ts'
import { inspectStore, Ledger } from '../support/load.ts'
import { startServer, temporaryFolder, until } from '../support/process.ts'

const writers = 32
const key = 'a-key-for-processes-0123456789'

/** Two servers of one SQLite file, each with its own port. */
async function startTwo() {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder())
  const file = join(folder.path, 'pets.db')
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: `sqlite:${file}` }
  const start = async () => stack.use(await startServer({ cwd: folder.path, env }))
  const servers = [await start(), await start()] as const
  return Object.assign(stack.move(), { file, servers })
}

test('10,000 animals, added by 32 clients of each of two processes, are read from the other one at once', async () => {
  await using two = await startTwo()
  const [first, second] = two.servers
  const ledger = new Ledger()
  const unseen: string[] = []
  const write = (port: number, otherPort: number) =>
    withClients({ port, key, count: writers }, async client => {
      using other = new KeepAliveClient(otherPort, key)
      while (ledger.acknowledged.size < 10_000) {
        const { body } = ledger.next()
        const created = await client.send({ method: 'POST', path: '/v1/pets', body })
        if (created.kind !== 'answered') throw new Error(`no response: ${JSON.stringify(created)}`)
        ledger.acknowledge(body, created.reply)
        const { text, headers } = created.reply
        const read = await other.send({ method: 'GET', path: headers.get('location') ?? '' })
        if (read.kind !== 'answered' || read.reply.text !== text) unseen.push(`${text}: ${JSON.stringify(read)}`)
      }
    })
  await Promise.all([write(first.port, second.port), write(second.port, first.port)])
  expect(unseen.slice(0, 5)).toEqual([])
  using checking = new KeepAliveClient(second.port, key)
  await ledger.expectEachOnce(checking)

  for (const server of two.servers) expect((await server.stop('SIGTERM')).exitCode).toBe(0)
  // The last one has moved the write-ahead log into the file.
  expect(existsSync(`${two.file}-wal`)).toBe(false)
  expect(inspectStore(two.file)).toEqual({ integrity: 'ok', animals: ledger.acknowledged.size })
})

test('kill -9 of one of two processes loses no acknowledged animal, and the other one goes on', async () => {
  await using two = await startTwo()
  const [killed, other] = two.servers
  const ledger = new Ledger()
  let isOver = false
  const write = ({ port }: { readonly port: number }) =>
    withClients({ port, key, count: writers }, async client => {
      while (!isOver) {
        const { body } = ledger.next()
        const created = await client.send({ method: 'POST', path: '/v1/pets', body })
        if (created.kind === 'answered') ledger.acknowledge(body, created.reply)
        else ledger.uncertain.add(body)
        if (created.kind !== 'answered') return
      }
    })
  const more = (animals: number) => {
    const wanted = ledger.acknowledged.size + animals
    return until('more animals', () => ledger.acknowledged.size >= wanted || undefined)
  }
  const writing = [write(killed), write(other)]
  await more(500)
  await killed.stop('SIGKILL')
  await writing[0]
  await more(500)
  isOver = true
  await writing[1]
  using checking = new KeepAliveClient(other.port, key)
  await ledger.expectEachOnce(checking)
  expect((await other.stop('SIGTERM')).exitCode).toBe(0)
  expect(inspectStore(two.file).integrity).toBe('ok')
})
