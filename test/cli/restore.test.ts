import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../src/errors.ts'
import { openSqliteRestore } from '../../src/store/sqlite/restore.ts'
import { animalLines } from '../faults/load.ts'
import { createKey, program, refusal, type Server, startServer } from '../support/process.ts'
import { spawnOnTerminal } from './child.ts'
import { workplace } from './workplace.ts'

const rex = '{"name":"Rex","categoryId":7}'
const add = async (server: Server, key: string, idempotencyKey = `${crypto.randomUUID()}`) => {
  const headers = { authorization: `Bearer ${key}`, 'idempotency-key': idempotencyKey }
  const response = await fetch(`${server.url}/pets`, { method: 'POST', headers, body: rex })
  const { id } = (await response.json()) as { id: number }
  return { id, replayed: response.headers.get('idempotency-replayed') }
}

function change(file: string, ...statements: readonly string[]): void {
  using database = new Database(file)
  for (const statement of statements) database.run(statement)
}

/** Every file of a folder with its bytes. */
const filesIn = (path: string) =>
  readdirSync(path, { withFileTypes: true })
    .map(found => `${found.name} ${found.isFile() && Bun.hash(readFileSync(join(path, found.name)))}`)
    .toSorted()

/** A store of four animals in pets.db, and its backup of the first two in backup.db. */
const prepared = workplace(animalLines(2))
beforeAll(async () => {
  for (const line of ['import animals.ndjson', 'backup backup.db', 'import animals.ndjson']) {
    expect(await prepared.petstore(...line.split(' '))).toMatchObject({ exitCode: 0 })
  }
  utimesSync(prepared.file('backup.db'), 0, 1_893_456_000)
})
afterAll(() => prepared[Symbol.dispose]())

const lostHistory = /\nThe store may not know .*\n.*valid again.*\n.*assigned again\.\n$/

/** A copy of that store and its backup. */
function withBackup() {
  const place = workplace('')
  cpSync(prepared.path, place.path, { recursive: true, preserveTimestamps: true })
  return place
}

test('every running server shows the animals of the backup; keys stay, and no id is assigned twice', async () => {
  using place = workplace('')
  const { path: cwd, surroundings } = place
  const newKey = (name: string) => createKey(cwd, name, '--database-url', 'sqlite:pets.db')
  const [till, revoked, lost] = [await newKey('till'), await newKey('revoked'), await newKey('lost')]
  await using server = await startServer(surroundings)
  await using other = await startServer(surroundings)
  const list = (of: Server, key: string) => of.fetch('/pets', key)
  expect([(await add(server, till, 'first')).id, (await add(other, till)).id]).toEqual([1, 2])
  await place.petstore('backup', 'backup.db')
  const backup = readFileSync(place.file('backup.db'))
  expect((await add(server, till, 'later')).id).toBe(3)
  await place.petstore('keys', 'revoke', 'revoked')
  change(place.file('pets.db'), "DELETE FROM api_keys WHERE name = 'lost'")
  const later = await newKey('later')
  for (const each of [server, other]) expect(await (await list(each, till)).json()).toHaveLength(3)

  const { exitCode, stdout, stderr } = await place.petstore('restore', '--yes', 'backup.db')
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' })
  expect(stderr).toContain('\n  API keys: 1 to add;')
  expect(stderr).toMatch(lostHistory)
  for (const each of [server, other]) {
    expect(await (await list(each, till)).json()).toHaveLength(2)
    const statuses = await Promise.all([till, later, lost, revoked].map(async key => (await list(each, key)).status))
    expect(statuses).toEqual([200, 200, 200, 401])
  }
  expect(await add(other, till, 'first')).toEqual({ id: 1, replayed: 'true' })
  expect(await add(other, till, 'later')).toEqual({ id: 4, replayed: null })
  expect(readFileSync(place.file('backup.db')).equals(backup)).toBe(true)
  expect(readdirSync(cwd).toSorted()).toEqual(['animals.ndjson', 'backup.db', 'pets.db', 'pets.db-shm', 'pets.db-wal'])
})

const shown = `Checking backup.db and the store
backup.db, last modified 2030-01-01 00:00Z, replaces the catalogue of pets.db:
  Animals:  2 in the backup; 4 now
  API keys: 0 to add; those of the store stay as they are
Animals added since the backup will be lost, including those added until the restore locks the store.
Replace the catalogue? [y/N] `.replaceAll('\n', '\r\n')

test.each([
  ['\n', 'petstore: Nothing was restored: answer y, or use --yes', ''],
  ['y\n', 'Restored 2 animals', ''],
  ['y\n', 'pets.db was moved, replaced or deleted); try again', 'moved.db'],
])('on a terminal it shows what it replaces and asks: after %j, %s', async (answer, last, movedTo) => {
  using place = withBackup()
  const before = await place.exported()
  await using terminal = spawnOnTerminal([program, 'restore', 'backup.db'], place.surroundings)
  await terminal.asks()
  expect(terminal.shown).toBe(shown)
  if (movedTo) renameSync(place.file('pets.db'), place.file(movedTo))
  terminal.type(answer)
  const isRestored = last.startsWith('Restored')
  expect(await terminal.exited()).toBe(isRestored ? 0 : 1)
  expect(terminal.shown).toEndWith(`${last}\r\n`)
  if (movedTo) renameSync(place.file(movedTo), place.file('pets.db'))
  expect((await place.exported()) === before).toBe(!isRestored)
})

/** The index has another id than the table: only a full check finds that. */
function changeIndex(file: string): void {
  writeFileSync(file, readFileSync(file, 'latin1').replace('available\u0002', 'available\u0005'), 'latin1')
}

/** A table of animals with the same columns, and these ids. */
const otherPets = (strict: string, ...ids: readonly unknown[]) => [
  'DROP TABLE pets',
  `CREATE TABLE pets (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, category_id INTEGER NOT NULL, status TEXT) ${strict}`,
  ...ids.map(id => `INSERT INTO pets VALUES (${id}, 'Rex', 7, NULL)`),
]
const view = "CREATE VIEW pets AS SELECT 1 AS id, 'Rex' AS name, 7 AS category_id, NULL AS status"

test.each<[string, string, (path: string) => unknown]>([
  ['missing', 'does not exist (ENOENT)', () => {}],
  ['text', 'not a backup of this program (SQLITE_NOTADB)', path => writeFileSync(path, 'no database '.repeat(99))],
  ["another program's", 'not a backup of this program', path => change(path, 'CREATE TABLE invoices (id)')],
  ['with columns of any type', 'its tables', path => change(path, ...otherPets('', 1))],
  ['with a view, which can be endless', 'its tables', path => change(path, 'DROP TABLE pets', view)],
  ['with a last id that is text', 'has values', path => change(path, "UPDATE sqlite_sequence SET seq = 'abc'")],
  ['damaged in an index', 'damaged (integrity_check)', changeIndex],
  ['of a later version', 'schema version 2', path => change(path, 'PRAGMA user_version = 2')],
  ['the store', 'the store itself', path => linkSync(join(path, '../pets.db'), path)],
])('a file that is %s is refused, and nothing changes', async (name, problem, make) => {
  using place = withBackup()
  const bad = place.file('bad.db')
  if (/^(with|damaged|of)/.test(name)) copyFileSync(place.file('backup.db'), bad)
  make(bad)
  for (const store of name === 'the store' ? ['pets.db'] : ['pets.db', 'new.db']) {
    const before = filesIn(place.path)
    const refused = await openSqliteRestore(place.file(store), bad).catch(error => error)
    expect(refused).toBeInstanceOf(StoreError)
    expect(refused.message).toContain(problem)
    expect(filesIn(place.path)).toEqual(before)
  }
})

const keyOfNoDate =
  "INSERT INTO api_keys (name, hash, shown, permission, created_at_ms) VALUES ('x', 'y', 'z', 'metrics', 9000000000000000000)"
const ignoring = 'CREATE TRIGGER odd BEFORE INSERT ON pets WHEN new.id = 2 BEGIN SELECT raise(IGNORE); END'

test.each<[string, RegExp, string, ...string[]]>([
  ['a backup has ids below 1', /SQLITE_CONSTRAINT_CHECK/, 'backup.db', ...otherPets('STRICT', -1, 0, 5)],
  [
    'a backup has a key of no date',
    /SQLITE_CONSTRAINT/,
    'backup.db',
    'PRAGMA ignore_check_constraints = ON',
    keyOfNoDate,
  ],
  ['a trigger of the store ignores an animal', /has 2 animals.* took 1;.*triggers/, 'pets.db', ignoring],
])('if %s, nothing changes', async (_, problem, file, ...statements) => {
  using place = withBackup()
  change(place.file(file), ...statements)
  const before = await place.exported()
  expect(await refusal(['restore', '--yes', 'backup.db'], place.surroundings)).toMatch(problem)
  expect(await place.exported()).toBe(before)
})

test('a damaged store is refused with a way out; the new store does not know what happened after the backup', async () => {
  using place = withBackup()
  const file = place.file('pets.db')
  const restore = () => place.petstore('restore', '--yes', 'backup.db')
  // Too large to be checked completely by every command.
  change(file, 'CREATE TABLE padding (bytes BLOB)', 'INSERT INTO padding VALUES (zeroblob(9000000))')
  writeFileSync(file, readFileSync(file).fill(0xff, 4_096, 8_192))
  const before = filesIn(place.path)
  const problem = 'the file is damaged (quick_check); stop the servers'
  expect(await refusal(['restore', '--yes', 'backup.db'], place.surroundings)).toContain(problem)
  expect(filesIn(place.path)).toEqual(before)
  renameSync(file, `${file}.damaged`)
  const { stderr } = await restore()
  expect(stderr).toContain('the store will be created\n')
  expect(stderr).toMatch(lostHistory)
  expect(await place.exported()).toBe(animalLines(2, 1n).replaceAll('"id":4', '"id":2'))
  // By now the store knows as much as the backup.
  expect((await restore()).stderr).not.toMatch(lostHistory)
  // A server that has created a new store meanwhile makes no difference.
  change(file, 'DELETE FROM pets', 'DELETE FROM sqlite_sequence')
  change(place.file('backup.db'), 'DELETE FROM pets')
  expect((await restore()).stderr).toMatch(lostHistory)
  await place.shell(`echo '${rex}' | petstore import -`)
  expect(await place.exported()).toStartWith('{"id":3,')
})

test('a read-only backup in WAL mode is restored, and no file is left beside it', async () => {
  using place = withBackup()
  mkdirSync(place.file('backups'))
  const backup = place.file('backups/copy.db')
  copyFileSync(place.file('backup.db'), backup)
  change(backup, 'PRAGMA journal_mode = wal', "UPDATE sqlite_sequence SET seq = 50 WHERE name = 'pets'")
  chmodSync(backup, 0o400)
  expect(await place.petstore('restore', '--yes', 'backups/copy.db')).toMatchObject({ exitCode: 0 })
  expect(readdirSync(place.file('backups'))).toEqual(['copy.db'])
  expect((await place.exported()).split('\n')).toHaveLength(3)
  // The backup has assigned the ids up to 50.
  await place.shell(`echo '${rex}' | petstore import -`)
  expect(await place.exported()).toContain(`{"id":51,${rex.slice(1)}`)
})

test('animals in the write-ahead log of a backup are restored', async () => {
  using place = withBackup()
  {
    using store = new Database(place.file('pets.db'))
    store.run("INSERT INTO pets (name, category_id) VALUES ('In the log', 7)")
    for (const suffix of ['', '-wal']) copyFileSync(place.file(`pets.db${suffix}`), place.file(`copy.db${suffix}`))
  }
  expect(await place.petstore('restore', '--yes', 'copy.db')).toMatchObject({ exitCode: 0 })
  expect(await place.exported()).toContain('In the log')
})

test('a restore that gets SIGINT while it replaces the animals changes nothing', async () => {
  using place = withBackup()
  const before = await place.exported()
  await using child = await place.startHeld(['restore', '--yes', 'backup.db'])
  child.kill('SIGINT')
  expect(await child.exited).toBe(1)
  expect(await child.stderr.text()).toEndWith(': Interrupted: nothing was restored\n')
  expect(await place.exported()).toBe(before)
})

test('of two restores at once, one waits for the other, and its animals are the catalogue', async () => {
  using place = withBackup()
  const before = await place.exported()
  copyFileSync(place.file('pets.db'), place.file('later.db'))
  await using first = await place.startHeld(['restore', '--yes', 'backup.db'])
  await using second = place.start(['restore', '--yes', 'later.db'])
  for await (const text of second.stderr.pipeThrough(new TextDecoderStream())) {
    if (text.includes('Restoring')) first.kill('SIGUSR2')
  }
  expect(await Promise.all([first.exited, second.exited])).toEqual([0, 0])
  expect(await place.exported()).toBe(before)
})
