import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromiumPath, launchChromium } from '../support/browser.ts'
import { installPackage, npmWaitMs } from '../support/package.ts'
import { projectFolder, run, temporaryFolder } from '../support/process.ts'
import { type Service, startService } from '../support/service.ts'

const folder = temporaryFolder()
const dist = join(folder.path, 'node_modules/petstore/dist/client')
let service: Service

beforeAll(async () => {
  await installPackage(folder.path)
  service = await startService({ pages: packedPages() })
}, 2 * npmWaitMs)

afterAll(async () => {
  await service[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

/** A program that uses the package: adds an animal, finds it in a list, and is refused with a wrong key. */
const program = `
import { PetstoreClient, responseOf, stringify, UnauthorizedError } from 'petstore/client'

export async function add(baseUrl, apiKey, name) {
  const store = new PetstoreClient({ baseUrl, apiKey })
  const added = await store.pets.create({ name, categoryId: 9223372036854775807n, status: 'sold' })
  const found = []
  for await (const pet of store.pets.list({ status: 'sold', limit: 1 })) if (pet.name === name) found.push(pet)
  const stranger = new PetstoreClient({ baseUrl, apiKey: 'no-key-of-this-service' })
  const refused = await stranger.pets.list().page().catch(error => error instanceof UnauthorizedError)
  const { id, ...rest } = added
  return [id === found[0].id, found.length, refused, responseOf(added).status, stringify({ ...rest, name: undefined })].join(' ')
}
`
const printed = 'true 1 true 201 {"categoryId":9223372036854775807,"status":"sold"}'

test.each([
  ['Node', 'node'],
  ['Bun', process.execPath],
])('the packed client works in %s, in a folder with nothing else', async (name, runtime) => {
  const calls = `
const store = new PetstoreClient({ baseUrl: 'http://127.0.0.1:1/v1/', apiKey: 'a-key' })
console.log(store, store.pets.list({ limit: 2 }), await add(...process.argv.slice(2)))`
  writeFileSync(join(folder.path, 'add.mjs'), `${program}\n${calls}\n`)
  const command = [runtime, 'add.mjs', `${service.origin}/v1`, service.key, `From ${name}`]
  const objects = "PetstoreClient { baseUrl: 'http://127.0.0.1:1/v1', pets: Pets {} } PetList { limit: 2 }"
  expect(await run(command, { cwd: folder.path })).toEqual({
    exitCode: 0,
    stdout: `${objects} ${printed}\n`,
    stderr: '',
  })
})

test('a bundle for browsers has at most 6 KB', async () => {
  const bundle = await Bun.build({ entrypoints: [join(dist, 'index.js')], minify: true, target: 'browser' })
  const [output] = bundle.outputs
  const code = new Uint8Array((await output?.arrayBuffer()) ?? [])
  expect(Bun.gzipSync(code, { level: 9 }).length).toBeWithin(1_000, 6_144 + 1)
})

/** A page for the service to serve, and the packed files. */
function packedPages() {
  const asset = (type: string, bytes: Uint8Array) => ({ type, headers: {}, read: async () => bytes })
  const script = (file: string) => asset('text/javascript', readFileSync(join(dist, file)))
  const scripts = readdirSync(dist).map(file => [`/client/${file}`, script(file)] as const)
  return new Map([['/', asset('text/html', Buffer.from('<!doctype html><title>Pets</title>'))], ...scripts])
}

test.skipIf(chromiumPath === undefined).each([
  ['a secure page', '127.0.0.1', 'function'],
  ['a page over plain HTTP, without randomUUID', 'pets.test', 'undefined'],
])('the packed client works in Chromium, in %s', async (_what, host, randomUuid) => {
  await using browser = await launchChromium('--host-resolver-rules=MAP pets.test 127.0.0.1')
  const page = await browser.newPage()
  await page.goto(`http://${host}:${service.port}/`)
  const call = `add(location.origin + '/v1', ${JSON.stringify(service.key)}, 'From ${host}')`
  const inPage = program
    .replace(/import (.*) from .*/, "const $1 = await import('/client/index.js')")
    .replace('export ', '')
  const script = `(async () => {${inPage} return [typeof crypto.randomUUID, await ${call}].join(' ')})()`
  expect(await page.evaluate(script)).toBe(`${randomUuid} ${printed}`)
})

const typed = `
import { type ClientOptions, type Pet, PetstoreClient, type PetPage, PetstoreError, responseOf, stringify } from 'petstore/client'
const options: ClientOptions = {
  baseUrl: 'http://127.0.0.1/v1',
  apiKey: 'a-key',
  onRequest: ({ attempt, url }) => attempt + url.length,
  headers: { 'user-agent': 'import/1' },
  onResponse: async ({ durationMs, rateLimit }) => durationMs + (rateLimit?.remaining ?? 0),
  onDeprecation: ({ sunset }) => sunset?.getTime(),
}
const { pets } = new PetstoreClient(options)
const { signal } = new AbortController()
export const pet: Pet = await pets.create({ name: 'Rex', categoryId: 7n, status: 'available' }, { signal })
export const page: PetPage = await pets.list({ limit: 50, headers: { 'x-a': 'b' }, retries: 0 }).page()
export const some: Pet[] = await pets.list({ cursor: page.nextCursor, headers: new Headers() }).toArray({ max: 5 })
export const text: string = stringify([pet, page, responseOf(page)?.requestId])
for await (const { id, status } of pets.list({ status: 'sold' })) if (status === 'sold') await pets.get(id)
await page.next?.().catch((error: unknown) => (error instanceof PetstoreError ? error.status : undefined))
`

const mistyped = `
import { PetstoreClient } from 'petstore/client'
new PetstoreClient({ apiKey: 'a-key' })
new PetstoreClient({ baseUrls: { production: 'a', staging: 'b' }, environment: 'test', apiKey: 'a-key' })
const store = new PetstoreClient({ baseUrl: 'http://127.0.0.1/v1', apiKey: 'a-key' })
store.pets.create({ name: 'Rex', categoryId: '7' })
store.pets.create({ name: 'Rex' })
store.pets.list({ status: 'lost' })
store.pets.list().toArray()
store.pets.get(1n, { headers: { 'x-a': 7 } })
`

function typeCheck(source: string, resolution: string) {
  writeFileSync(join(folder.path, 'use.ts'), source)
  const module = resolution === 'bundler' ? 'esnext' : resolution
  const options = `--strict --exactOptionalPropertyTypes --noEmit --target es2022 --module ${module} --moduleResolution ${resolution}`
  return run([join(projectFolder, 'node_modules/.bin/tsc'), ...options.split(' '), 'use.ts'], { cwd: folder.path })
}

test.each(['nodenext', 'bundler'])('its types pass a strict type check on their own (%s)', async resolution => {
  expect(await typeCheck(typed, resolution)).toEqual({ exitCode: 0, stdout: '', stderr: '' })
})

test('its types reject invalid options and animals', async () => {
  const { exitCode, stdout } = await typeCheck(mistyped, 'nodenext')
  const lines = [...stdout.matchAll(/^use\.ts\((\d+),/gm)].map(([, line]) => Number(line))
  expect(exitCode).not.toBe(0)
  expect(lines).toEqual([3, 4, 6, 7, 8, 9, 10])
})

test('it marks the deprecated operation, and contains no tests and no imports from outside', () => {
  const files = readdirSync(dist)
  expect(files.filter(file => !/^[a-z-]+\.(js|d\.ts)$/.test(file))).toEqual([])
  const text = files.map(file => readFileSync(join(dist, file), 'utf8')).join('\n')
  const imported = [...text.matchAll(/\b(?:from |import\()'([^']*)'/g)].map(([, path]) => path)
  expect(imported.length).toBeGreaterThan(10)
  expect(imported.filter(path => !path?.startsWith('./'))).toEqual([])
  expect(text).toMatch(/@deprecated [\s\S]*\bget\(id: bigint \| number/)
})
