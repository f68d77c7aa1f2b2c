import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Pet } from '../../src/pet.ts'
import { keepAnimals, type Service, startService } from '../http/service.ts'
import { generatorsFolder, isSkipped, newWorkFolder, shell } from './shell.ts'

setDefaultTimeout(900_000)

/** The file `client.json` of a folder: a generator, and the commands that run a program with its client. */
interface GeneratedClient {
  readonly language: string
  readonly generator: string
  readonly version: string
  /** The programs that must be installed. */
  readonly needs: readonly string[]
  /** Installs what the generator and the client need. */
  readonly prepare?: string
  /** Generates the client from `openapi.json`. */
  readonly generate: string
  /** Checks or compiles the program with the client. */
  readonly build: string
  readonly run: string
  /** Whether the program also calls the experimental operations. */
  readonly changes?: boolean
}

/** Names and ids that broke clients: a leading space, other scripts, the longest name, an id beyond 2^53. */
const animals: readonly Pet[] = [
  { id: 1n, name: ' Rex', categoryId: -1n, status: 'available' },
  { id: 2n, name: '本\n', categoryId: 0n },
  { id: 3n, name: 'x'.repeat(1_000), categoryId: 2n ** 63n - 1n, status: 'pending' },
  { id: 2n ** 53n, name: '🐈', categoryId: -(2n ** 63n), status: 'sold' },
]

/**
 * What every program prints: it adds, repeats, fetches and lists, and reads errors. For the first 400 it sends the name
 * U+FEFF, which is blank in JavaScript only: a client that checks names lets it pass.
 */
function transcript(codePrefix: string, { changes = false }: GeneratedClient): readonly string[] {
  const pet = '9007199254740993 9223372036854775807 sold  Mia 🐈'
  return [
    `created ${pet}`,
    'repeated 9007199254740993',
    `fetched ${pet}`,
    'listed 1 2 3 9007199254740992 9007199254740993',
    ...(changes ? ['updated 9007199254740993 9223372036854775807 none New', 'removed 204 404'] : []),
    ...['400 invalid_request', '400 invalid_cursor', '401 invalid_api_key', '404 pet_not_found'].map(line =>
      line.replace(' ', ` ${codePrefix}`),
    ),
  ]
}

/** The service as a later version may be: its responses have further properties, headers and error codes. */
function startLaterVersion({ origin }: Service) {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const { method, headers } = request
      const body = method === 'GET' ? null : await request.arrayBuffer()
      const response = await fetch(`${origin}${pathname}${search}`, { method, headers, body })
      // As text, because parsing would round integers.
      const text = (await response.text())
        .replaceAll('"categoryId":', '"added":{"later":[true,null]},"categoryId":')
        .replace('"code":"', '"added":1.5,"code":"later_')
      response.headers.set('X-Added-Later', 'yes')
      response.headers.delete('Content-Length')
      return new Response(text || null, response)
    },
  })
  return { origin: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) }
}

for (const file of [...new Bun.Glob('*/client.json').scanSync(generatorsFolder)].sort()) {
  const client: GeneratedClient = JSON.parse(readFileSync(join(generatorsFolder, file), 'utf8'))
  const title = `${client.language}, ${client.generator} ${client.version}`
  let folder: string

  describe.skipIf(isSkipped(title, client.needs))(title, () => {
    beforeAll(async () => {
      process.stderr.write(`Generating and building ${title}…\n`)
      folder = await newWorkFolder(dirname(file))
      for (const command of [client.prepare, client.generate, client.build]) if (command) await shell(command, folder)
    })

    test.each([
      ['this version', ''],
      ['a later version with additions', 'later_'],
    ])('on %s adds, repeats, fetches, lists and perhaps changes animals, and reads errors', async (_, codePrefix) => {
      await using service = await startService()
      await keepAnimals(service, animals)
      await using later = startLaterVersion(service)
      const { origin } = codePrefix ? later : service
      const printed = await shell(client.run, folder, { PETSTORE_URL: `${origin}/v1`, PETSTORE_KEY: service.key })
      expect(printed.split('\n').slice(0, -1)).toEqual(transcript(codePrefix, client))
      expect((await service.call('/v1/pets')).json).toHaveLength(animals.length + (client.changes ? 0 : 1))
    })
  })
}
