import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import server from '../../package.json' with { type: 'json' }
import manifest from '../../src/client/package.json' with { type: 'json' }
import { npmWaitMs, projectFolder, readProjectFile, run, temporaryFolder } from '../support/process.ts'
import { type Service, startService } from '../support/service.ts'
import { chromiumPath, launchChromium } from '../web/browser.ts'
import { npm, pack } from './pack.ts'

/** Builds the client's package and packs it. In a copy of the project, because another test may build at the same time. */
async function packClient(into: string) {
  using copy = temporaryFolder()
  const sources = ['LICENSE', 'package.json', 'package-lock.json', 'scripts', 'src']
  for (const name of [...sources, 'tsconfig.json', 'tsconfig.client.json']) {
    cpSync(join(projectFolder, name), join(copy.path, name), { recursive: true })
  }
  symlinkSync(join(projectFolder, 'node_modules'), join(copy.path, 'node_modules'))
  await npm(copy.path, 'run', 'build')
  return await pack(into, join(copy.path, 'dist/petstore-client'))
}

const folder = temporaryFolder()
const installed = join(folder.path, 'node_modules/petstore-client')
let packed: Awaited<ReturnType<typeof packClient>>
let bundle: Uint8Array<ArrayBuffer>
let service: Service

beforeAll(async () => {
  packed = await packClient(folder.path)
  writeFileSync(join(folder.path, 'package.json'), '{ "private": true, "type": "module" }\n')
  await npm(folder.path, 'install', '--offline', '--no-audit', '--no-fund', `./${packed.filename}`)
  bundle = await bundleForBrowsers()
  service = await startService({ pages: bundlePages() })
}, 2 * npmWaitMs)

afterAll(async () => {
  await service[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

test('it is small, brings no other package, and contains every file that it exports', () => {
  expect(readdirSync(join(folder.path, 'node_modules')).filter(name => !name.startsWith('.'))).toEqual([manifest.name])
  expect(packed.unpackedSize).toBeWithin(30_000, 65_000)
  const { '.': main, ...others } = manifest.exports
  for (const path of Object.values({ ...main, ...others })) expect(packed.files).toContain(path.replace('./', ''))
})

test('it has the version of the server, also in the documents', () => {
  expect(manifest.version).toBe(server.version)
  for (const file of ['docs/client.md', 'src/client/README.md']) {
    const text = readProjectFile(file)
    expect(text.match(/petstore-client-.*\.tgz/g)).toEqual([packed.filename])
  }
})

/** A program that uses the package: adds an animal, finds it in a list, and is refused with a wrong key. */
const program = `
import { PetstoreClient, RefusedError, stringify } from 'petstore-client'

export async function add(baseUrl, apiKey, name) {
  const store = new PetstoreClient({ baseUrl, apiKey })
  const added = await store.pets.create({ name, categoryId: 9223372036854775807n, status: 'sold' })
  const found = []
  for await (const pet of store.pets.list({ status: 'sold', limit: 1 })) if (pet.name === name) found.push(pet)
  const stranger = new PetstoreClient({ baseUrl, apiKey: 'no-key-of-this-service' })
  const refused = await stranger.pets.list().page().catch(error => error instanceof RefusedError)
  const { id, ...rest } = added
  return [id === found[0].id, found.length, refused, stringify({ ...rest, name: undefined })].join(' ')
}
`
const printed = 'true 1 true {"categoryId":9223372036854775807,"status":"sold"}'

test.each([
  ['Node', 'node'],
  ['Bun', process.execPath],
])('the packed client works in %s, in a folder with nothing else', async (name, runtime) => {
  writeFileSync(join(folder.path, 'add.mjs'), `${program}\nconsole.log(await add(...process.argv.slice(2)))\n`)
  const command = [runtime, 'add.mjs', `${service.origin}/v1`, service.key, `From ${name}`]
  expect(await run(command, { cwd: folder.path })).toEqual({
    exitCode: 0,
    stdout: `${printed}\n`,
    stderr: '',
  })
})

test('the example of the README prints what the README shows', async () => {
  await using empty = await startService()
  const { code, output } = readmeExample()
  const runnable = code.replace('http://127.0.0.1:8080', empty.origin).replace('pets_...', empty.key)
  writeFileSync(join(folder.path, 'readme.mjs'), runnable)
  expect(await run(['node', 'readme.mjs'], { cwd: folder.path })).toEqual({ exitCode: 0, stdout: output, stderr: '' })
})

function readmeExample() {
  const readme = readFileSync(join(installed, 'README.md'), 'utf8')
  const [, code = '', output = ''] = /^```ts\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```$/m.exec(readme) ?? []
  return { code, output }
}

/** The whole client in one minified file. */
async function bundleForBrowsers() {
  const entry = join(folder.path, 'entry.js')
  writeFileSync(entry, "export * from 'petstore-client'\n")
  const { outputs } = await Bun.build({ entrypoints: [entry], minify: true, target: 'browser' })
  return new Uint8Array((await outputs[0]?.arrayBuffer()) ?? [])
}

/** A page for the service to serve, and the bundle. */
function bundlePages() {
  const asset = (type: string, bytes: Uint8Array) => ({ type, headers: {}, read: async () => bytes })
  return new Map([
    ['/', asset('text/html', Buffer.from('<!doctype html><title>Pets</title>'))],
    ['/client.js', asset('text/javascript', bundle)],
  ])
}

test.skipIf(chromiumPath === undefined)(
  'the bundle works in Chromium, in a secure page, and over plain HTTP, without randomUUID',
  async () => {
    await using browser = await launchChromium('--host-resolver-rules=MAP pets.test 127.0.0.1')
    const page = await browser.newPage()
    const inPage = program
      .replace(/import (.*) from .*/, "const $1 = await import('/client.js')")
      .replace('export ', '')
    for (const [host, randomUuid] of Object.entries({ '127.0.0.1': 'function', 'pets.test': 'undefined' })) {
      await page.goto(`http://${host}:${service.port}/`)
      const call = `add(location.origin + '/v1', ${JSON.stringify(service.key)}, 'From ${host}')`
      const script = `(async () => {${inPage} return [typeof crypto.randomUUID, await ${call}].join(' ')})()`
      expect(await page.evaluate(script)).toBe(`${randomUuid} ${printed}`)
    }
  },
)

const typed = `
import { type ClientOptions, type Pet, PetstoreClient, type PetPage, PetstoreError, stringify } from 'petstore-client'
const options: ClientOptions = {
  baseUrl: 'http://127.0.0.1/v1',
  apiKey: 'a-key',
  headers: { 'user-agent': 'import/1' },
  onAttempt: ({ durationMs, error, deprecation }) => [durationMs, error?.code, deprecation?.sunset?.getTime()],
}
const { pets } = new PetstoreClient(options)
const { signal } = new AbortController()
export const pet: Pet = await pets.create({ name: 'Rex', categoryId: 7n, status: 'available' }, { signal })
export const page: PetPage = await pets.list({ limit: 50, headers: { 'x-a': 'b' }, retries: 0 }).page()
export const next: PetPage = await pets.list({ cursor: page.nextCursor, headers: new Headers() }).page()
export const text: string = stringify([pet, page])
for await (const { id, status } of pets.list({ status: 'sold' })) if (status === 'sold') await pets.get(id)
export const changed: Pet = await pets.update(pet.id, { name: 'Rex', categoryId: 7, status: null }, { ifStatus: 'sold' })
await pets.remove(7, { ifStatus: pet.status, signal })
await pets.get(7n).catch((error: unknown) => (error instanceof PetstoreError ? error.status : undefined))
// @ts-expect-error: no address
new PetstoreClient({ apiKey: 'a-key' })
// @ts-expect-error: no category
pets.create({ name: 'Rex' })
// @ts-expect-error: null removes only a status
pets.update(1n, { name: null })
// @ts-expect-error: an unknown status
pets.list({ status: 'lost' })
`

const nodeTypes = ['--lib', 'es2022', '--types', 'node', '--typeRoots', join(projectFolder, 'node_modules/@types')]

test.each([
  ['with the types of Node instead of the DOM', 'typescript', ['--module', 'nodenext', ...nodeTypes]],
  ['of a bundler', 'typescript', ['--module', 'esnext', '--moduleResolution', 'bundler']],
  ['of the oldest TypeScript that its README names', 'oldest', ['--module', 'nodenext', '--lib', 'es2022,dom']],
])(
  'its types, which reject invalid options and animals, and its README pass a strict type check %s',
  async (...row) => {
    const [, compiler, options] = row
    const [, oldest] = /TypeScript (\d+\.\d+) or newer/.exec(readFileSync(join(installed, 'README.md'), 'utf8')) ?? []
    writeFileSync(join(folder.path, 'use.ts'), typed)
    writeFileSync(join(folder.path, 'readme.ts'), readmeExample().code)
    const tsc = join(projectFolder, 'node_modules', compiler.replace('oldest', `typescript-${oldest}`), 'bin/tsc')
    const strict = ['--strict', '--exactOptionalPropertyTypes', '--noEmit', '--target', 'es2022']
    const command = ['node', tsc, ...strict, ...options, 'use.ts', 'readme.ts']
    expect(await run(command, { cwd: folder.path })).toEqual({ exitCode: 0, stdout: '', stderr: '' })
  },
)
