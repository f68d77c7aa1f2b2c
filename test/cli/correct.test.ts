import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { closeSync, constants, openSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { openStores } from '../../src/store/open.ts'
import { KeepAliveClient } from '../support/connections.ts'
import { animalLines, key, Ledger, Load, serveFrom } from '../support/load.ts'
import { ask, describeWithPostgres } from '../support/postgres.ts'
import { inherited, petstore, program, readProjectFile, refusal, type Server, until } from '../support/process.ts'
import { newTestDatabase, type StoreKind } from '../support/service.ts'
import { spawnOnTerminal } from './child.ts'
import { workplace } from './workplace.ts'

const document = readProjectFile('docs/operating.md')
const [, block = ''] = /^## Correcting and removing animals$.*?^```sh\n(.*?)^```$/ms.exec(document) ?? []
const examples = block.trimEnd().split('\n')

/** Two processes on one empty store. */
async function startTwo(kind: StoreKind) {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await newTestDatabase(kind))
  const servers = [stack.use(await serveFrom(url)), stack.use(await serveFrom(url))] as const
  return Object.assign(stack.move(), {
    url,
    servers,
    /** Runs a line of the document, beside both processes. */
    async type(line: string): Promise<void> {
      const args = line.split(' ').slice(1)
      expect(await petstore(args, { cwd: tmpdir(), env: { DATABASE_URL: url } })).toMatchObject({ exitCode: 0 })
    },
    async change(statement: string): Promise<void> {
      if (kind === 'postgres') return await ask(url, statement)
      using database = new Database(url.replace('sqlite:', ''), { readwrite: true, strict: true })
      database.run('PRAGMA busy_timeout = 5000')
      database.run(statement)
    },
    /** Both processes show these animals, by their ids, and no others. */
    async expectShown(animals: ReadonlyMap<number, string>) {
      const listed = (status: string) => `[${[...animals.values()].filter(text => text.includes(status)).join()}]`
      for (const server of servers) {
        const get = (path: string) => server.fetch(`/pets${path}`, key)
        expect(await (await get('')).text()).toBe(listed(''))
        for (const status of ['available', 'sold'])
          expect(await (await get(`?status=${status}`)).text()).toBe(listed(`"status":"${status}"`))
        for (const id of [1, 2, 3, 4]) {
          const found = await get(`/${id}`)
          expect(found.ok ? await found.text() : found.status).toBe(animals.get(id) ?? 404)
        }
        const pages: string[] = []
        for (let query: string | undefined = '?limit=1'; query; ) {
          const page = await get(query)
          pages.push(await page.text())
          query = /\?[^>]+/.exec(page.headers.get('link') ?? '')?.[0]
        }
        expect(pages).toEqual([...animals.values()].map(text => `[${text}]`))
      }
    },
  })
}

async function add(server: Server, number: number): Promise<string> {
  const body = `{"name":"Animal ${number}","categoryId":7,"status":"available"}`
  return await (await server.fetch('/pets', key, { method: 'POST', body })).text()
}

function testsOn(kind: StoreKind): void {
  test('both processes show each change of docs/operating.md at once, and no id can be changed', async () => {
    await using two = await startTwo(kind)
    const animals = new Map<number, string>()
    for (const id of [1, 2, 3, 4]) animals.set(id, await add(two.servers[0], id))
    const cursor = (await two.servers[0].fetch('/pets?limit=3', key)).headers.get('x-next-cursor')
    await two.expectShown(animals)
    const [sell = '', rename = '', remove = '', ...others] = examples
    expect(others).toEqual([])
    await two.type(sell)
    await two.expectShown(animals.set(2, '{"id":2,"name":"Animal 2","categoryId":7,"status":"sold"}'))
    await two.type(rename)
    await two.expectShown(animals.set(2, '{"id":2,"name":"Rex","categoryId":8}'))
    await two.type(remove)
    animals.delete(3)
    await two.expectShown(animals)
    // The cursor names the deleted animal.
    expect(await (await two.servers[0].fetch(`/pets?cursor=${cursor}`, key)).text()).toBe(`[${animals.get(4)}]`)
    await expect(two.change('UPDATE pets SET id = 9 WHERE id = 1')).rejects.toThrow('the id of an animal cannot change')
    await two.expectShown(animals)
  })

  test('200 corrections and removals while 32 clients create: nothing is lost, doubled or resurrected', async () => {
    await using two = await startTwo(kind)
    const { transfer, close } = await openStores(two.url, { create: false })
    const loads = two.servers.map(({ port }) => new Load(port, key, 16, { restMs: 20 }))
    /** The bodies of the animals that were changed, or undefined. The newest: their ids must not be assigned again. */
    const changed = new Map<string, string | undefined>()
    const change = async () => {
      for (let changes = 0; changes < 50; ) {
        const created = loads.flatMap(({ acknowledged }) => [...acknowledged].slice(1))
        const [id, body = ''] = created.findLast(([id]) => !changed.has(id)) ?? []
        if (id === undefined) await new Promise(setImmediate)
        else if (++changes % 2 === 0) {
          changed.set(id, undefined)
          expect(await transfer.remove([BigInt(id)])).toEqual([])
        } else {
          const [category = ''] = /"categoryId":-?\d+(?=[^"]*(?:"status":"\w+")?\}$)/.exec(body) ?? []
          changed.set(id, `{"name":"Corrected",${category},"status":"sold"}`)
          expect(await transfer.correct(BigInt(id), { name: 'Corrected', status: 'sold' })).toBeDefined()
        }
      }
    }
    await Promise.all([change(), change(), change(), change()])
    await Promise.all(loads.map(load => load.stop()))
    await close()
    const ledger = new Ledger()
    for (const load of loads) ledger.include(load)
    for (const [id, body] of changed) {
      if (body === undefined) ledger.acknowledged.delete(id)
      else ledger.acknowledged.set(id, body)
    }
    expect(changed.size).toBe(200)
    for (const { port } of two.servers) {
      using client = new KeepAliveClient(port, key)
      await ledger.expectEachOnce(client)
    }
  })
}

describe('SQLite: correcting an animal', () => testsOn('sqlite'))
describeWithPostgres('PostgreSQL: correcting an animal', () => testsOn('postgres'))

/** A store with the animals 1, 4 and 7. */
async function threeAnimals() {
  const place = workplace(animalLines(3, 1n))
  expect(await place.petstore('import', '--keep-ids', 'animals.ndjson')).toMatchObject({ exitCode: 0 })
  return place
}

test('correct prints the animal before and after, and remove what it removes', async () => {
  using place = await threeAnimals()
  const name = { name: 'Rex', categoryId: 9 }
  expect(await place.petstore('correct', '4', '--name', '-Rex', '--category', '-9', '--status', 'sold')).toEqual({
    exitCode: 0,
    stdout: expect.stringMatching(
      /^ID {2}STATUS {5}CATEGORY +NAME\n4 {3}available {2}-90\d+ .*1\n4 {3}sold {7}-9 +-Rex\n$/,
    ),
    stderr: 'Corrected animal 4 in pets.db, before and after:\n',
  })
  const { stdout } = await place.petstore('correct', '4', '--name=Rex', '-c', '9.0', '--no-status', '--json')
  const before = { id: 4, name: '-Rex', categoryId: -9, status: 'sold' }
  expect(stdout).toBe(`${JSON.stringify({ before, after: { id: 4, ...name } })}\n`)
  expect(await place.petstore('remove', '4', '1', '4', '-y')).toEqual({
    exitCode: 0,
    stdout: '',
    stderr: expect.stringMatching(
      /^ID {2}STATUS {2}CATEGORY +NAME\n4 {3}- +9 +Rex\n1 {3}.*\nRemoved 2 animals from pets.db\n$/,
    ),
  })
  expect(await place.exported()).toMatch(/^\{"id":7,.*\}\n$/)
})

test('Ctrl-C while nobody reads the output ends the command, which does not say that nothing was corrected', async () => {
  using place = await threeAnimals()
  await place.shell('mkfifo unread')
  // A reader that reads nothing.
  const reader = openSync(place.file('unread'), constants.O_RDWR)
  try {
    const fill = 'exec > unread; head -c 65536 /dev/zero'
    await using child = Bun.spawn(['sh', '-c', `${fill}; exec ${program} correct 4 --name Rex`], {
      cwd: place.path,
      env: { ...inherited, ...place.surroundings.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const corrected = 'Corrected animal 4 in pets.db, before and after:\n'
    const stderr = child.stderr.pipeThrough(new TextDecoderStream())
    let shown = ''
    for await (const text of stderr) {
      shown += text
      if (shown === corrected) child.kill('SIGINT')
    }
    expect([shown, await child.exited, child.signalCode]).toEqual([corrected, 130, 'SIGINT'])
  } finally {
    closeSync(reader)
  }
  expect(await place.exported()).toContain('{"id":4,"name":"Rex",')
})

const refused: [exitCode: number, line: string, message: string][] = [
  [1, 'correct 5 --name Rex', 'No animal has id 5: nothing was corrected'],
  [1, 'correct 4 --name Rex --database-url sqlite:none.db', 'Cannot open the store /'],
  [2, 'remove 4', 'Cannot ask without a terminal: use --yes'],
  [1, 'remove --yes 4 5 1 -6', 'No animal has id 5 or -6: nothing was removed'],
]

test('unknown animals, a missing store and a missing terminal get one line, and nothing changes', async () => {
  using place = await threeAnimals()
  for (const [exitCode, line, message] of refused) {
    const stderr = await refusal(line.split(' '), place.surroundings, exitCode)
    expect(stderr).toStartWith(`petstore: ${message}`)
    expect(stderr).toMatch(/^[^\n]+\n$/)
  }
  expect(await place.exported()).toBe(animalLines(3, 1n))
})

test.each([
  ['y\n', 0, 'Removed 1 animal from pets.db'],
  ['\u0004', 1, 'petstore: Nothing was removed: answer y, or use --yes'],
  ['\u0003', 1, 'petstore: Interrupted: nothing was removed'],
])('on a terminal, remove shows the animals, asks, and holds no lock: %j', async (answer, exitCode, last) => {
  using place = await threeAnimals()
  await place.petstore('correct', '4', '--name', '犬'.repeat(1_000))
  await using terminal = spawnOnTerminal([program, 'remove', '4'], place.surroundings)
  await until('the question', () => terminal.shown.includes('[y/N]') || terminal.hasEnded() || undefined)
  expect(terminal.shown).toMatch(/\r\n4 .* 犬+…\r\nRemove 1 animal from pets\.db for good\? \[y\/N\] $/)
  expect(Bun.stringWidth(terminal.shown.split('\r\n')[1] ?? '')).toBeWithin(79, 81)
  expect(await place.petstore('correct', '7', '--name', 'Meanwhile')).toMatchObject({ exitCode: 0 })
  terminal.type(answer)
  expect(await terminal.exited()).toBe(exitCode)
  expect(terminal.shown).toEndWith(`${last}\r\n`)
  expect((await place.exported()).includes('{"id":4,')).toBe(exitCode === 1)
})

test('behind a lock, one line says what to do, also after Ctrl-C, and nothing has changed', async () => {
  using place = await threeAnimals()
  const interrupted = async (args: readonly string[]) => {
    await using child = place.start(args)
    let shown = ''
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      shown += text
      if (text.endsWith('Waiting for the store\n')) child.kill('SIGINT')
    }
    expect(await child.exited).toBe(1)
    return shown
  }
  const expectUnchanged = async (done: string, ...args: readonly string[]) => {
    const [refused, shown] = await Promise.all([refusal(args, place.surroundings), interrupted(args)])
    const locked = 'pets.db: another process has locked it (SQLITE_BUSY); stop that process, or try again'
    expect(refused).toEndWith(`Waiting for the store\npetstore: Nothing has changed in the store ${locked}\n`)
    expect(shown).toEndWith(`petstore: Interrupted: nothing was ${done}\n`)
  }
  {
    using database = new Database(place.file('pets.db'), { readwrite: true, strict: true })
    database.run('BEGIN IMMEDIATE')
    await Promise.all([
      expectUnchanged('corrected', 'correct', '4', '--name', 'Rex'),
      expectUnchanged('removed', 'remove', '--yes', '4'),
    ])
  }
  expect(await place.exported()).toBe(animalLines(3, 1n))
})

describeWithPostgres('PostgreSQL: one line says what to do', () => {
  const changes = [
    ['correct', '1', '--name', 'Rex'],
    ['remove', '--yes', '1'],
  ]

  async function storeWithAnimal() {
    const database = await newTestDatabase('postgres')
    const stores = await openStores(database.url, { create: true })
    const pet = await stores.pets.create({ name: 'Mia', categoryId: 7n })
    return {
      url: database.url,
      fails: async (args: readonly string[]) =>
        (await refusal(args, { cwd: tmpdir(), env: { DATABASE_URL: database.url } })).split('\n').at(-2) ?? '',
      expectUnchanged: async () => expect(await stores.pets.get(1n)).toEqual(pet),
      async [Symbol.asyncDispose]() {
        await stores.close()
        await database[Symbol.asyncDispose]()
      },
    }
  }

  test('if the connection is lost during COMMIT, the outcome is unknown', async () => {
    await using store = await storeWithAnimal()
    // Deferred: it runs during COMMIT.
    await ask(
      store.url,
      `CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
       CREATE CONSTRAINT TRIGGER end_session AFTER INSERT OR UPDATE OR DELETE ON pets
       DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION end_session()`,
    )
    try {
      const [correct = [], remove = []] = changes
      expect(await store.fails(correct)).toBe(
        'petstore: Lost the store: animal 1 may be corrected; run the command again',
      )
      expect(await store.fails(remove)).toBe('petstore: Lost the store: either all of them were removed or none')
      using place = workplace(animalLines(1))
      expect(await store.fails(['import', place.file('animals.ndjson')])).toMatch(
        /^petstore: Lost the store: either all animals of .* were imported or none; check before you import again$/,
      )
    } finally {
      await ask(store.url, 'DROP TRIGGER end_session ON pets; DROP FUNCTION end_session()')
    }
    await store.expectUnchanged()
  })
})
