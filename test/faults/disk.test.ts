import { expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { workplace } from '../cli/workplace.ts'
import { KeepAliveClient, type Reply, withClients } from '../support/connections.ts'
import { allAnimals, animalLines, inspectStore, problemIn, readAnimal } from '../support/load.ts'
import { petstore, refusal, type Server, startServer, temporaryFolder } from '../support/process.ts'

const diskBytes = 3 * 1024 ** 2
const key = 'a-key-for-disk-trouble-0123456789'
const mustRun = process.env['CI'] === 'true' && process.getuid?.() === 0

/** Skips the test, with a line that says why, if it cannot run here. */
function testUnless(obstacle: string | undefined, name: string, run: () => Promise<void>): void {
  const skipped = obstacle !== undefined && !mustRun
  if (skipped) process.stdout.write(`Skipped: ${name}: ${obstacle}\n`)
  // At once: some of them wait for a stop that takes 9 s.
  const testIt = skipped ? test.skip : test.concurrent
  testIt(skipped ? `${name} (skipped: ${obstacle})` : name, run)
}

const noMount = obstacleTo(() => smallDisk(1024 ** 2)[Symbol.dispose]())
const noFreeze = obstacleTo(() => {
  using disk = realDisk()
  command('fsfreeze', '--freeze', disk.path)
  command('fsfreeze', '--unfreeze', disk.path)
})

const noErrors = obstacleTo(() => {
  using disk = realDisk()
  makeReadOnly(disk.path)
})

const start = (cwd?: string) =>
  startServer({ ...(cwd && { cwd }), env: { PETSTORE_API_KEY: key, DATABASE_URL: 'sqlite:pets.db' } })

async function answered(client: KeepAliveClient, body?: string, path = '/v1/pets'): Promise<Reply> {
  const outcome = await client.send({ method: body ? 'POST' : 'GET', path, ...(body && { body }) })
  if (outcome.kind !== 'answered') throw new Error(`Without an answer: ${outcome.kind}`)
  return outcome.reply
}

/** What the metrics, /healthz and the command say, each in its way. */
async function expectWritable(client: KeepAliveClient, { port, cwd }: Server, expected: boolean): Promise<void> {
  const [metrics, healthz] = [
    await answered(client, undefined, '/metrics'),
    await answered(client, undefined, '/healthz'),
  ]
  expect(metrics.text).toContain(`\npetstore_store_writable ${expected ? 1 : 0}\n`)
  const text = expected ? 'ok' : 'read-only'
  expect([healthz.status, healthz.text]).toEqual([200, text])
  expect(await petstore(['health', '--port', `${port}`], { cwd })).toEqual({
    exitCode: 0,
    stdout: `${text}\n`,
    stderr: '',
  })
}

let made = 0
/** A long name, so that a few hundred of them fill a small disk; all of them take the same room. */
const longAnimal = (number: number) =>
  `{"name":"${String(number).padStart(6, '0')} ${'🐘'.repeat(400)}","categoryId":${2n ** 62n + 1n}}`

/** Adds an animal: it is acknowledged, or refused as a client can understand it. */
async function add(client: KeepAliveClient, acknowledged: Map<string, string>): Promise<number> {
  const body = longAnimal(++made)
  const reply = await answered(client, body)
  if (reply.status === 201) acknowledged.set(readAnimal(reply.text).id, body)
  else expect(problemIn({ kind: 'answered', reply }, 201)).toBeUndefined()
  return reply.status
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
  const body = longAnimal(++made)
  const keyed = { method: 'POST', path: '/v1/pets', headers: { 'Idempotency-Key': 'first' }, body } as const
  const creation = await client.send(keyed)
  if (creation.kind === 'answered') acknowledged.set(readAnimal(creation.reply.text).id, body)

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
    expect((await answered(client)).status).toBe(200)
  }
  await expectWritable(client, server, false)
  // SQLite commits a replay, which changes nothing, also on a full disk.
  expect(await client.send(keyed)).toEqual({ kind: 'answered', reply: expect.objectContaining({ status: 201 }) })
  await expectWritable(client, server, false)

  rmSync(filler)
  for (let attempt = 0; attempt < 10; attempt++) expect(await add(client, acknowledged)).toBe(201)
  await expectWritable(client, server, true)
  await expectExactly(acknowledged, server)
})

testUnless(noMount, 'a restore onto a full disk says so and changes nothing, and the server continues', async () => {
  using place = workplace(animalLines(15_000))
  const made = await place.petstore('import', 'animals.ndjson')
  expect(made).toMatchObject({ exitCode: 0 })
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
    const noRoom = 'the disk has no room for up to 2.2 times the size of the backup'
    const why = restore ? 'the disk is full (SQLITE_FULL)' : noRoom
    expect(problem).toEndWith(`Nothing has changed in the store ${disk.path}/pets.db: ${why}; free some space\n`)
    if (restore) expect(await restore.exited).toBe(1)
    expect(await allAnimals(client)).toEqual(acknowledged)
    rmSync(filler)
    expect(await add(client, acknowledged)).toBe(201)
  }
  await expectExactly(acknowledged, server)
})

testUnless(noErrors, 'a disk that becomes read-only: POST is 503, GET 200, and the log says what to do', async () => {
  using disk = realDisk()
  await using server = await start(disk.path)
  using client = new KeepAliveClient(server.port, key)
  expect(await add(client, new Map())).toBe(201)
  makeReadOnly(disk.path)
  expect(await add(client, new Map())).toBe(503)
  expect((await answered(client)).status).toBe(200)
  await expectWritable(client, server, false)
  const ended = await server.stop('SIGTERM')
  expect(ended.stderr).toMatch(/"store unavailable".*SQLITE_\w+; check the file and its disk/)
  const problem = await refusal(['serve', '--port', '0', '--database-url', 'sqlite:new.db'], { cwd: disk.path })
  expect(problem).toContain('the file system is read-only (EROFS)')
})

for (const isWriting of [true, false]) {
  const what = isWriting ? 'while it writes' : 'while nothing is written'
  testUnless(noFreeze, `a server on a disk frozen ${what} stops without its store, and loses nothing`, async () => {
    using disk = realDisk()
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: 'sqlite:pets.db', PETSTORE_DRAIN_TIME: '0s' }
    await using server = await startServer({ cwd: disk.path, env })
    const acknowledged = new Map<string, string>()
    {
      using client = new KeepAliveClient(server.port, key)
      for (let animals = 0; animals < 10; animals++) expect(await add(client, acknowledged)).toBe(201)
    }
    {
      await using _ = freeze(disk.path)
      if (isWriting) server.fetch('/pets', key, { method: 'POST', body: longAnimal(++made) }).catch(() => {})
      process.kill(server.pid, 'SIGTERM')
      const line = 'The store did not close in time'
      await server.says('that it ends without its store', () => server.stderr.includes(line) || undefined)
    }
    // A thread that waits for a frozen disk cannot be ended, not even by SIGKILL.
    expect((await server.ended()).exitCode).toBe(1)
    expect(inspectStore(join(disk.path, 'pets.db')).integrity).toBe('ok')
    await using next = await start(disk.path)
    using client = new KeepAliveClient(next.port, key)
    const found = await allAnimals(client)
    expect([...acknowledged].filter(([id, body]) => found.get(id) !== body)).toEqual([])
  })
}

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

/** Suspends all writes to a disk until disposed of; at the latest after a minute, even if this process is killed. */
function freeze(path: string): AsyncDisposable {
  command('fsfreeze', '--freeze', path)
  const thaw = `trap : TERM; sleep 60 & wait; kill $!; exec fsfreeze --unfreeze "$0"`
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
