import { expect, test } from 'bun:test'
import { writeCursor } from '../../src/page.ts'
import { KeepAliveClient } from '../support/connections.ts'
import { startServer, temporaryFolder } from '../support/process.ts'

const clients = 32
const creations = 50
const key = 'a-key-for-reads-0123456789'

async function text(client: KeepAliveClient, path: string, body?: string): Promise<string> {
  const outcome = await client.send({ method: body === undefined ? 'GET' : 'POST', path, ...(body && { body }) })
  return outcome.kind === 'answered' ? outcome.reply.text : outcome.kind
}

test.concurrent.each([{ processes: 1 }, { processes: 2 }])(
  'a read that starts after a 201 sees the animal, with %j',
  async ({ processes }) => {
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
      const paths = [`/v1/pets/${id}`, `/v1/pets?cursor=${writeCursor(before, undefined)}`, '/v1/pets?limit=100']
      const seen = await text(reader, paths[index % paths.length] ?? '')
      if (!seen.includes(pet)) stale.push(`${pet} is not in ${seen}`)
    }
    for (let creation = 0; creation < creations; creation++) {
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
  },
)
