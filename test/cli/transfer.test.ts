import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openStores } from '../../src/store/open.ts'
import { batchPetsMax } from '../../src/store-contract.ts'
import { animalLines } from '../support/load.ts'
import { ask, describeWithPostgres } from '../support/postgres.ts'
import { inherited, program, refusal, until } from '../support/process.ts'
import { newTestDatabase } from '../support/service.ts'
import { workplace } from './workplace.ts'

test('an export that is imported with its ids gives the same export', async () => {
  const lines = animalLines(12_000)
  using place = workplace(lines)
  const checked =
    'Reading animals.ndjson\nAll lines are valid: animals.ndjson has 12,000 animals; nothing was imported\n'
  expect((await place.petstore('import', '--dry-run', '--keep-ids', 'animals.ndjson')).stderr).toBe(checked)
  expect(readdirSync(place.path)).toEqual(['animals.ndjson'])
  expect(await place.petstore('import', '--keep-ids', 'animals.ndjson')).toEqual({
    exitCode: 0,
    stdout: '',
    stderr: `Created a new store at ${join(realpathSync(place.path), 'pets.db')}
Reading animals.ndjson
All lines are valid; adding the animals to pets.db
Imported 12,000 animals into pets.db, with their own ids
`,
  })
  const made = await place.petstore('export', 'out.ndjson')
  expect(made).toMatchObject({ exitCode: 0, stdout: '' })
  expect(made.stderr).toMatch(
    /^Exporting the animals of pets.db\nExported 12,000 animals to out.ndjson \([\d,]+ bytes\)\n$/,
  )
  expect(readFileSync(place.file('out.ndjson'), 'utf8')).toBe(lines)
  expect(await place.exported()).toBe(lines)
  // A reader that closes the pipe causes no error.
  const { stdout, stderr } = await place.shell('(petstore export; echo $? >&2) | head -2')
  expect({ stdout, stderr }).toEqual({ stdout: animalLines(2), stderr: 'Exporting the animals of pets.db\n0\n' })
  expect(readdirSync(place.path).toSorted()).toEqual(['animals.ndjson', 'out.ndjson', 'pets.db'])
})

test('an import with an invalid line, however far down, imports nothing', async () => {
  using place = workplace(`${animalLines(11_000, 1n)}{}\n`)
  const problem = `Reading animals.ndjson
petstore: Cannot import animals.ndjson: nothing was imported; invalid lines: 1
  line 11001: name is missing: expected 1 to 1,000 characters; categoryId is missing: expected a 64-bit integer
`
  expect(await refusal(['import', 'animals.ndjson', '--dry-run'], place.surroundings)).toBe(problem)
  expect(readdirSync(place.path)).toEqual(['animals.ndjson'])
  expect(await refusal(['import', 'animals.ndjson'], place.surroundings)).toEndWith(problem)
  expect(await place.exported()).toBe('')
})

test.each([
  ['import nowhere.ndjson', 'Cannot import nowhere.ndjson: the file does not exist (ENOENT)'],
  ['import .', 'Cannot import .: it is a folder; name a file, or - for stdin'],
  ['import - < .', 'Cannot import stdin: it is a folder; name a file, or - for stdin'],
  ['export --database-url sqlite:./', 'Cannot open the store ./: it is not a regular file'],
  [
    'keys create --name a --database-url sqlite:new/',
    'Cannot open the store new/: it is not a regular file (EISDIR); set',
  ],
  ['export', 'pets.db: it does not exist; is this the folder of the store?'],
])('%s is refused and changes nothing', async (line, message) => {
  using place = workplace('mine')
  expect(await place.shell(`petstore ${line}`)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(message) })
  expect(readdirSync(place.path)).toEqual(['animals.ndjson'])
  expect(readFileSync(place.file('animals.ndjson'), 'utf8')).toBe('mine')
})

/** In both phases of an import, ten thousand of these do not fit into SQLite's cache, and a part goes to a file. */
const wideLines = `{"name":"${'é'.repeat(1_000)}","categoryId":7}\n`.repeat(10_001)

/** The size of the unnamed files that the process has open. */
function unnamedBytes(pid: number): number {
  const opened = readdirSync(`/proc/${pid}/fd`).map(name => `/proc/${pid}/fd/${name}`)
  const sizes = opened.map(path => statSync(path, { throwIfNoEntry: false }))
  return sizes.reduce((sum, found) => sum + (found?.isFile() && found.nlink === 0 ? found.size : 0), 0)
}

test('an import that gets SIGINT while it waits for more lines changes nothing', async () => {
  using place = workplace('')
  await using child = place.start(['import', '-'])
  child.stdin.write(wideLines)
  await child.stdin.flush()
  await until('animals in the temporary table', () => unnamedBytes(child.pid) > 1_000_000 || undefined)
  child.kill('SIGINT')
  expect(await child.exited).toBe(1)
  expect(await child.stderr.text()).toEndWith(': Interrupted: nothing was imported\n')
  expect(await place.exported()).toBe('')
})

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'an import that gets %s while the store adds the animals changes nothing',
  async signal => {
    using place = workplace(wideLines)
    await using child = await place.startHeld(['import', 'animals.ndjson'])
    expect(statSync(place.file('pets.db-wal')).size).toBeGreaterThan(1_000_000)
    child.kill(signal)
    expect(await child.exited).toBe(signal === 'SIGKILL' ? 137 : 1)
    if (signal !== 'SIGKILL') expect(await child.stderr.text()).toEndWith(': Interrupted: nothing was imported\n')
    expect(await place.exported()).toBe('')
    expect(readdirSync(place.path).toSorted()).toEqual(['animals.ndjson', 'pets.db'])
  },
)

test('an import can be interrupted while it reads input that is always ready', async () => {
  using place = workplace('')
  const command = ['sh', '-c', `exec "${program}" import - --dry-run < /dev/zero`]
  await using child = Bun.spawn(command, { cwd: place.path, env: inherited, stderr: 'pipe' })
  let printed = ''
  for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
    if (printed === '') child.kill('SIGINT')
    printed += text
  }
  expect(printed).toEndWith('petstore: Interrupted: nothing was imported\n')
  expect(await child.exited).toBe(1)
})

test('an interrupted export leaves no file', async () => {
  using place = workplace(animalLines(batchPetsMax + 1))
  await place.petstore('import', '--keep-ids', 'animals.ndjson')
  await using child = await place.startHeld(['export', 'out.ndjson'])
  const [partial = ''] = readdirSync(place.path).filter(name => name.startsWith('out.ndjson.partial-'))
  expect(readFileSync(place.file(partial), 'utf8')).toBe(animalLines(batchPetsMax))
  child.kill('SIGINT')
  expect(await child.exited).toBe(1)
  expect(await child.stderr.text()).toEndWith(': Interrupted: out.ndjson was not created\n')
  expect(readdirSync(place.path).toSorted()).toEqual(['animals.ndjson', 'pets.db'])
})

test('memory does not grow with the catalogue', async () => {
  using place = workplace(`{"name":"${'x'.repeat(1_000)}","categoryId":7}\n`.repeat(100_000))
  for (const line of ['import animals.ndjson', 'export out.ndjson', 'backup copy.db', 'restore --yes copy.db']) {
    await using child = place.start(line.split(' '))
    const [, kilobytes] = /^VmHWM:\s*(\d+) kB$/m.exec(await child.stdout.text()) ?? []
    expect(await child.exited).toBe(0)
    // The catalogue is 100 MB. Reading all of it at once takes 300 MB.
    expect(Number(kilobytes)).toBeWithin(10_000, 230_000)
  }
  expect(statSync(place.file('out.ndjson')).size).toBeGreaterThan(100_000_000)
}, 180_000)

describeWithPostgres('PostgreSQL: an import', () => {
  test('whose connection is lost during COMMIT has an unknown outcome', async () => {
    await using database = await newTestDatabase('postgres')
    await (await openStores(database.url, { create: true })).close()
    // Deferred: it runs during COMMIT.
    await ask(
      database.url,
      `CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
       CREATE CONSTRAINT TRIGGER end_session AFTER INSERT ON pets
       DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION end_session()`,
    )
    try {
      using place = workplace(animalLines(1))
      const env = { DATABASE_URL: database.url }
      expect(await refusal(['import', 'animals.ndjson'], { cwd: place.path, env })).toEndWith(
        '\npetstore: Lost the store: either all animals of animals.ndjson were imported or none; check before you import again\n',
      )
    } finally {
      await ask(database.url, 'DROP TRIGGER end_session ON pets; DROP FUNCTION end_session()')
    }
  })
})
