import { expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { workplace } from '../cli/workplace.ts'
import { KeepAliveClient, type Outcome, withClients } from '../support/connections.ts'
import { refusal, type Server, startServer, temporaryFolder } from '../support/process.ts'
import { allAnimals, animalLines, inspectStore, problemIn, readAnimal } from './load.ts'

const diskBytes = 3 * 1024 ** 2
const key = 'a-key-for-disk-trouble-0123456789'
const mustRun = process.env['CI'] === 'true' && process.getuid?.() === 0

/** Skips the test, with a line that says why, if it cannot run here. */
function testUnless(obstacle: string | undefined, name: string, run: () => Promise<void>): void {
  const skipped = obstacle !== undefined && !mustRun
  if (skipped) process.stdout.write(`Skipped: ${name}: ${obstacle}\n`)
  // At once: one of them waits for a stop that takes 9 s.
  const testIt = skipped ? test.skip : test.concurrent
  testIt(skipped ? `${name} (skipped: ${obstacle})` : name, run)
}

const noMount = obstacleTo(() => smallDisk(1024 ** 2)[Symbol.dispose]())
const noDisk = obstacleTo(() => {
  using disk = realDisk()
  command('fsfreeze', '--freeze', disk.path)
  command('fsfreeze', '--unfreeze', disk.path)
  makeReadOnly(disk.path)
})

const env = { PETSTORE_API_KEY: key, DATABASE_URL: 'sqlite:pets.db' }
const start = (cwd: string) => startServer({ cwd, env })

/** What the metrics and /healthz say, each in its way. */
async function expectWritable(server: Server, expected: boolean): Promise<void> {
  const ask = (path: string) => fetch(new URL(path, server.url), { headers: { authorization: `Bearer ${key}` } })
  expect(await (await ask('/metrics')).text()).toContain(`\npetstore_store_writable ${expected ? 1 : 0}\n`)
  const health = await ask('/healthz')
  expect([health.status, await health.text()]).toEqual([200, expected ? 'ok' : 'read-only'])
}

let made = 0
/** A long name, so that a few hundred of them fill a small disk; all of them take the same room. */
const longAnimal = (number: number) =>
  `{"name":"${String(number).padStart(6, '0')} ${'🐘'.repeat(400)}","categoryId":${2n ** 62n + 1n}}`

/** Adds an animal: it is acknowledged, or refused as a client can understand it. */
async function add(client: KeepAliveClient, acknowledged: Map<string, string>): Promise<number> {
  const body = longAnimal(++made)
  const outcome = await client.send({ method: 'POST', path: '/v1/pets', body })
  expect(problemIn(outcome, 201)).toBeUndefined()
  const { status, text } = (outcome as Extract<Outcome, { kind: 'answered' }>).reply
  if (status === 201) acknowledged.set(readAnimal(text).id, body)
  return status
}

/** Appends to a file until its disk has so many bytes free. */
function fill(filler: string, freeBytes: number): void {
  for (;;) {
    const { bavail, bsize } = statfsSync(dirname(filler))
    if (bavail * bsize <= freeBytes) return
    appendFileSync(filler, Buffer.alloc(4096))
  }
}

/** After a kill there is exactly what was acknowledged: in the file, and for the next server. */
async function expectExactly(acknowledged: Map<string, string>, server: Server): Promise<void> {
  await server.stop('SIGKILL')
  expect(inspectStore(join(server.cwd, 'pets.db'))).toEqual({ integrity: 'ok', animals: acknowledged.size })
  await using next = await start(server.cwd)
  using client = new KeepAliveClient(next.port, key)
  expect(await allAnimals(client)).toEqual(acknowledged)
}

testUnless(noMount, 'a full disk: POST is 503 and GET 200, and with space again POST is 201', async () => {
  using disk = smallDisk(diskBytes)
  const filler = join(disk.path, 'filler')
  await using server = await start(disk.path)
  using client = new KeepAliveClient(server.port, key)
  const acknowledged = new Map<string, string>()
  expect(await add(client, acknowledged)).toBe(201)
  // The disk runs full in the middle of what eight clients are adding.
  fill(filler, 256 * 1024)
  await withClients({ port: server.port, key, count: 8 }, async writing => {
    while ((await add(writing, acknowledged)) === 201);
  })
  expect(acknowledged.size).toBeGreaterThan(1)
  fill(filler, 0)
  // What a failed group had already written stays allocated to the log: a smaller group may still fit there.
  while ((await add(client, acknowledged)) === 201);
  for (let attempt = 0; attempt < 10; attempt++) {
    expect(await add(client, acknowledged)).toBe(503)
    expect((await server.fetch('/pets', key)).status).toBe(200)
  }
  await expectWritable(server, false)
  rmSync(filler)
  for (let attempt = 0; attempt < 10; attempt++) expect(await add(client, acknowledged)).toBe(201)
  await expectWritable(server, true)
  await expectExactly(acknowledged, server)
})

testUnless(noMount, 'a restore onto a full disk says so and changes nothing, and the server goes on', async () => {
  using place = workplace(animalLines(15_000))
  expect(await place.petstore('import', 'animals.ndjson')).toMatchObject({ exitCode: 0 })
  using disk = smallDisk(diskBytes)
  const filler = join(disk.path, 'filler')
  await using server = await start(disk.path)
  using client = new KeepAliveClient(server.port, key)
  const acknowledged = new Map<string, string>()
  expect(await add(client, acknowledged)).toBe(201)
  const args = ['restore', '--yes', 'pets.db', '--database-url', `sqlite:${disk.path}/pets.db`]
  for (const code of ['ENOSPC', 'SQLITE_FULL']) {
    await using restore = code === 'ENOSPC' ? undefined : await place.startHeld(args)
    // The first is enough for the write-ahead log alone.
    fill(filler, code === 'ENOSPC' ? 1.5 * statSync(place.file('pets.db')).size : 64 * 1024)
    restore?.kill('SIGUSR2')
    const problem = restore ? await restore.stderr.text() : await refusal(args, place.surroundings)
    expect(problem).toContain('Nothing has changed in the store')
    expect(problem).toContain(restore ? 'SQLITE_FULL' : 'the disk has no room')
    if (restore) expect(await restore.exited).toBe(1)
    expect(await allAnimals(client)).toEqual(acknowledged)
    rmSync(filler)
    expect(await add(client, acknowledged)).toBe(201)
  }
  await expectExactly(acknowledged, server)
})

testUnless(noDisk, 'a read-only disk: POST is 503, GET 200, and a start says why it is impossible', async () => {
  using disk = realDisk()
  await using server = await start(disk.path)
  using client = new KeepAliveClient(server.port, key)
  expect(await add(client, new Map())).toBe(201)
  makeReadOnly(disk.path)
  expect(await add(client, new Map())).toBe(503)
  expect((await server.fetch('/pets', key)).status).toBe(200)
  await expectWritable(server, false)
  expect((await server.stop('SIGTERM')).stderr).toMatch(/"store unavailable".*SQLITE_/)
  const args = ['serve', '--port', '0', '--database-url', 'sqlite:new.db']
  expect(await refusal(args, { cwd: disk.path })).toContain('EROFS')
})

testUnless(noDisk, 'a server whose disk freezes stops without its store, and loses nothing', async () => {
  using disk = realDisk()
  await using server = await startServer({ cwd: disk.path, env: { ...env, PETSTORE_DRAIN_TIME: '0s' } })
  const acknowledged = new Map<string, string>()
  {
    using client = new KeepAliveClient(server.port, key)
    for (let animals = 0; animals < 10; animals++) expect(await add(client, acknowledged)).toBe(201)
  }
  {
    await using _ = freeze(disk.path)
    server.fetch('/pets', key, { method: 'POST', body: longAnimal(++made) }).catch(() => {})
    process.kill(server.pid, 'SIGTERM')
    await server.says('that it ends without its store', () => server.stderr.includes('did not close') || undefined)
  }
  // A thread that waits for a frozen disk cannot be ended, not even by SIGKILL.
  expect((await server.ended()).exitCode).toBe(1)
  await using next = await start(disk.path)
  using client = new KeepAliveClient(next.port, key)
  const found = await allAnimals(client)
  expect([...acknowledged].filter(([id, body]) => found.get(id) !== body)).toEqual([])
})

/** A file system that `source` describes to mount, gone with the test. Root only. */
function mounted(source: (folder: string) => readonly string[]) {
  using stack = new DisposableStack()
  const folder = stack.use(temporaryFolder())
  const path = join(folder.path, 'disk')
  mkdirSync(path)
  command('mount', ...source(folder.path), path)
  // Lazy: it disappears even if a process still has one of its files open.
  stack.defer(() => command('umount', '--lazy', path))
  return Object.assign(stack.move(), { path })
}

/** In memory, of this size. */
function smallDisk(bytes: number) {
  return mounted(() => ['-t', 'tmpfs', '-o', `size=${bytes}`, 'petstore-test'])
}

/** In a file: it can be frozen. */
function realDisk() {
  return mounted(folder => {
    const image = join(folder, 'image')
    command('truncate', '--size=16M', image)
    command('mkfs.ext4', '-q', image)
    return ['-o', 'loop,errors=remount-ro', image]
  })
}

/** As the kernel does after an error of the disk. */
function makeReadOnly(path: string): void {
  const [device = ''] = Bun.spawnSync(['findmnt', '-n', '-o', 'SOURCE', path]).stdout.toString().trim().split('\n')
  writeFileSync(`/sys/fs/ext4/${basename(device)}/trigger_fs_error`, 'test')
}

/** Suspends all writes to a disk until disposed of; for two minutes at most, even if this process is killed. */
function freeze(path: string): AsyncDisposable {
  command('fsfreeze', '--freeze', path)
  const thaw = `trap : TERM; sleep 120 & wait; kill $!; exec fsfreeze --unfreeze "$0"`
  const thawing = Bun.spawn(['setsid', 'sh', '-c', thaw, path], { stdio: ['ignore', 'ignore', 'ignore'] })
  return {
    async [Symbol.asyncDispose]() {
      thawing.kill('SIGTERM')
      await thawing.exited
    },
  }
}

/** Why this cannot be done here; undefined if it can. */
function obstacleTo(attempt: () => void): string | undefined {
  try {
    attempt()
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function command(...words: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(words)
  const [why = ''] = stderr.toString().split('\n')
  // The same line on every machine: without the folder's random name.
  if (exitCode !== 0) throw new Error(why.replaceAll(words.at(-1) ?? '', '…'))
}
