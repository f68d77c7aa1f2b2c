import { expect, test } from 'bun:test'
import { writeCursor } from '../../src/page.ts'
import { KeepAliveClient, withClients } from '../support/connections.ts'
import { startServer, temporaryFolder } from '../support/process.ts'

const clients = 32
const trialsEach = Number(process.env['PETSTORE_TEST_TRIALS'] ?? 3_200) / clients
const key = 'a-key-for-reads-0123456789'

async function text(client: KeepAliveClient, path: string, body?: string): Promise<string> {
  const sent = body === undefined ? { method: 'GET' as const } : { method: 'POST' as const, body }
  const outcome = await client.send({ ...sent, path })
  return outcome.kind === 'answered' ? outcome.reply.text : outcome.kind
}

test.each([1, 2])(
  `a read that starts after a 201 sees the animal, in ${clients * trialsEach} trials with %d processes on one file`,
  async processes => {
    using folder = temporaryFolder()
    const start = () => startServer({ cwd: folder.path, env: { PETSTORE_API_KEY: key } })
    await using writing = await start()
    await using other = processes === 2 ? await start() : undefined
    const stale: string[] = []
    await withClients({ port: writing.port, key, count: clients }, async writer => {
      using reader = new KeepAliveClient((other ?? writing).port, key)
      let lastId = 0n
      for (let trial = 0; trial < trialsEach; trial++) {
        // The second list must not be the first one from the page cache.
        const list = `/v1/pets?limit=100&cursor=${writeCursor(lastId, undefined)}`
        await text(reader, list)
        const pet = await text(writer, '/v1/pets', '{"name":"Rex","categoryId":1}')
        const { id } = JSON.parse(pet)
        const [listed, got] = [await text(reader, list), await text(reader, `/v1/pets/${id}`)]
        if (!listed.includes(pet) || got !== pet) stale.push(pet)
        lastId = BigInt(id)
      }
    })
    expect(stale).toEqual([])
  },
)
