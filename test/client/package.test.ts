import { afterAll, expect, test } from 'bun:test'
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import server from '../../package.json' with { type: 'json' }
import manifest from '../../src/client/package.json' with { type: 'json' }
import { startService } from '../http/service.ts'
import { projectFolder, readProjectFile, run, temporaryFolder } from '../support/process.ts'
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
const packed = await packClient(folder.path)
writeFileSync(join(folder.path, 'package.json'), '{ "private": true, "type": "module" }\n')
await npm(folder.path, 'install', '--offline', '--no-audit', '--no-fund', `./${packed.filename}`)
const readme = readFileSync(join(folder.path, 'node_modules/petstore-client/README.md'), 'utf8')
const [, example = '', output = ''] = /^```ts\n([\s\S]*?)^```\n\n[^`]*```text\n([\s\S]*?)^```$/m.exec(readme) ?? []
const exampleFor = (origin: string, key: string) =>
  example.replace('http://127.0.0.1:8080', origin).replace('pets_...', key)
afterAll(() => folder[Symbol.dispose]())

test('it is small, brings no other package, and has the version of the server, also in the documents', () => {
  expect(readdirSync(join(folder.path, 'node_modules')).filter(name => !name.startsWith('.'))).toEqual([manifest.name])
  expect(packed.unpackedSize).toBeLessThan(65_000)
  expect(manifest.version).toBe(server.version)
  for (const file of ['docs/client.md', 'src/client/README.md']) {
    expect(readProjectFile(file).match(/petstore-client-.*\.tgz/g)).toEqual([packed.filename])
  }
})

test.each([
  ['Node', 'node'],
  ['Bun', process.execPath],
])('in %s, in a folder with nothing else, the example of the README prints what it shows', async (_name, runtime) => {
  await using service = await startService()
  writeFileSync(join(folder.path, 'readme.mjs'), exampleFor(service.origin, service.key))
  expect(await run([runtime, 'readme.mjs'], { cwd: folder.path })).toEqual({ exitCode: 0, stdout: output, stderr: '' })
})

test.skipIf(chromiumPath === undefined)('it also does so in Chromium, over HTTP too, without randomUUID', async () => {
  const entry = join(folder.path, 'entry.js')
  writeFileSync(entry, "export * from 'petstore-client'\n")
  const { outputs } = await Bun.build({ entrypoints: [entry], minify: true, target: 'browser' })
  const bundle = (await outputs[0]?.text()) ?? ''
  const asset = (type: string, text: string) => ({ type, headers: {}, read: async () => Buffer.from(text) })
  const pages = new Map([
    ['/', asset('text/html', '<!doctype html><title>Pets</title>')],
    ['/client.js', asset('text/javascript', bundle)],
  ])
  await using browser = await launchChromium('--host-resolver-rules=MAP pets.test 127.0.0.1')
  const page = await browser.newPage()
  for (const [host, randomUuid] of Object.entries({ '127.0.0.1': 'function', 'pets.test': 'undefined' })) {
    await using service = await startService({ pages })
    const origin = `http://${host}:${service.port}`
    await page.goto(origin)
    const code = exampleFor(origin, service.key).replace(/import (.*) from .*/, "const $1 = await import('/client.js')")
    const console = "const lines = [], console = { log: (...values) => lines.push(values.join(' ')) }"
    const inPage = `(async () => { ${console}\n${code}\nreturn [typeof crypto.randomUUID, ...lines, ''].join('\\n') })()`
    expect(await page.evaluate(inPage)).toBe(`${randomUuid}\n${output.replace('7n', '7')}`)
  }
})

const typed = `
import { type Attempt, type ClientOptions, type Pet, PetstoreClient, PetstoreError } from 'petstore-client'
const onAttempt = ({ error, deprecation }: Attempt) => [error?.code, deprecation?.sunset?.getTime()]
const options: ClientOptions = { baseUrl: 'http://127.0.0.1/v1', apiKey: 'a-key', onAttempt }
const { pets } = new PetstoreClient(options)
const { signal } = new AbortController()
export const pet: Pet = await pets.create({ name: 'Rex', categoryId: 7n }, { signal, headers: new Headers() })
await pets.get(7n).catch((error: unknown) => (error instanceof PetstoreError ? error.status : undefined))
// @ts-expect-error: no address
new PetstoreClient({ apiKey: 'a-key' })
// @ts-expect-error: no category
pets.create({ name: 'Rex' })
// @ts-expect-error: null removes only a status
pets.update(1n, { name: null })
`

const nodeTypes = ['--lib', 'es2022', '--types', 'node', '--typeRoots', join(projectFolder, 'node_modules/@types')]

test.each([
  ['with the types of Node instead of the DOM', false, ['--module', 'nodenext', ...nodeTypes]],
  ['of a bundler', false, ['--module', 'esnext', '--moduleResolution', 'bundler']],
  ['of the oldest TypeScript that the README names', true, ['--module', 'nodenext', '--lib', 'es2022,dom']],
])('programs and the README pass a strict type check %s', async (_what, isOldest, options) => {
  writeFileSync(join(folder.path, 'use.ts'), typed)
  writeFileSync(join(folder.path, 'readme.ts'), example)
  const [, oldest] = /TypeScript (\d+\.\d+) or newer/.exec(readme) ?? []
  const compiler = isOldest ? `typescript-${oldest}` : 'typescript'
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--noEmit', '--target', 'es2022', 'use.ts', 'readme.ts']
  const command = ['node', join(projectFolder, 'node_modules', compiler, 'bin/tsc'), ...strict, ...options]
  expect(await run(command, { cwd: folder.path })).toEqual({ exitCode: 0, stdout: '', stderr: '' })
})
