import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openStores } from '../../src/store/open.ts'
import { batchPetsMax } from '../../src/store-contract.ts'
import { animalLines } from '../faults/load.ts'
import { ask, describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { inherited, program, refusal } from '../support/process.ts'
import { workplace } from './workplace.ts'

test('an export that is imported with its ids gives the same export', async () => {
  const lines = animalLines(12_000)
  using place = workplace(lines)
  const checked = await place.petstore('import', '--dry-run', '--keep-ids', 'animals.ndjson')
  expect(checked.stderr).toEndWith('All lines are valid: animals.ndjson has 12,000 animals; nothing was imported\n')
  expect(readdirSync(place.path)).toEqual(['animals.ndjson'])
  const added = await place.petstore('import', '--keep-ids', 'animals.ndjson')
  expect(added).toMatchObject({ exitCode: 0, stdout: '' })
  expect(added.stderr).toStartWith(`Created a new store at ${join(realpathSync(place.path), 'pets.db')}\n`)
  expect(added.stderr).toEndWith('\nImported 12,000 animals into pets.db, with their own ids\n')
  const made = await place.petstore('export', 'out.ndjson')
  expect(made).toMatchObject({ exitCode: 0, stdout: '' })
  expect(made.stderr).toMatch(/\nExported 12,000 animals to out.ndjson \([\d,]+ bytes\)\n$/)
  expect(readFileSync(place.file('out.ndjson'), 'utf8')).toBe(lines)
  expect(await place.exported()).toBe(lines)
  // A reader that closes the pipe causes no error.
  const { stdout, stderr } = await place.shell('(petstore export; echo $? >&2) | head -2')
  expect({ stdout, stderr }).toEqual({ stdout: animalLines(2), stderr: 'Exporting the animals of pets.db\n0\n' })
})

test('an import with an invalid line, however far down, imports nothing', async () => {
  using place = workplace(`${animalLines(11_000, 1n)}{}\n`)
  const problem =
    /nothing was imported; invalid lines: 1\n {2}line 11001: name is missing: .*; categoryId is missing: .*\n$/
  expect(await refusal(['import', 'animals.ndjson', '--dry-run'], place.surroundings)).toMatch(problem)
  expect(readdirSync(place.path)).toEqual(['animals.ndjson'])
  expect(await refusal(['import', 'animals.ndjson'], place.surroundings)).toMatch(problem)
  expect(await place.exported()).toBe('')
})

test.each([
  ['import nowhere.ndjson', 'the file does not exist (ENOENT)'],
  ['import - < .', 'it is a folder'],
  ['export --database-url sqlite:./', 'it is not a regular file'],
  ['keys create --name a --database-url sqlite:new/', 'it is not a regular file (EISDIR)'],
  ['export', 'pets.db: it does not exist'],
])('%s is refused and changes nothing', async (line, message) => {
  using place = workplace('mine')
  expect(await place.shell(`petstore ${line}`)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(message) })
  expect(readdirSync(place.path)).toEqual(['animals.ndjson'])
})

test.each([
  ['waits for more lines', 'pipe'],
  ['has more lines to read', Bun.file('/dev/zero')],
] as const)('an import that %s changes nothing if it gets SIGINT', async (_, stdin) => {
  using place = workplace('')
  const env = { ...inherited, ...place.surroundings.env }
  await using child = Bun.spawn([program, 'import', '-'], { cwd: place.path, env, stdin, stderr: 'pipe' })
  let printed = ''
  for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
    printed += text
    if (printed.endsWith('Reading stdin\n')) child.kill('SIGINT')
  }
  expect(printed).toEndWith('petstore: Interrupted: nothing was imported\n')
  expect(await child.exited).toBe(1)
  expect(await place.exported()).toBe('')
})

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'an import that gets %s while the store adds the animals changes nothing',
  async signal => {
    // Ten thousand of these do not fit into SQLite's cache.
    using place = workplace(`{"name":"${'é'.repeat(1_000)}","categoryId":7}\n`.repeat(10_001))
    await using child = await place.startHeld(['import', 'animals.ndjson'])
    expect(statSync(place.file('pets.db-wal')).size).toBeGreaterThan(1_000_000)
    child.kill(signal)
    expect(await child.exited).toBe(signal === 'SIGKILL' ? 137 : 1)
    expect(await place.exported()).toBe('')
    expect(readdirSync(place.path).toSorted()).toEqual(['animals.ndjson', 'pets.db'])
  },
)

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

test('the memory of an import and an export does not grow with the catalogue', async () => {
  const line = `{"name":"${'犬'.repeat(1_000)}","categoryId":7}\n`
  const peaksWith = async (animals: number) => {
    using place = workplace(line.repeat(animals))
    const peaks = []
    for (const command of ['import animals.ndjson', 'export out.ndjson']) {
      await using child = place.start(command.split(' '))
      const [, kilobytes] = /^VmHWM:\s*(\d+) kB$/m.exec(await child.stdout.text()) ?? []
      expect(await child.exited).toBe(0)
      peaks.push(Number(kilobytes) * 1024)
    }
    return peaks
  }
  // Up to about 60,000, the runtime may keep more the more there is.
  const [few, many] = [await peaksWith(60_000), await peaksWith(120_000)]
  const addedBytes = Buffer.byteLength(line) * 60_000
  for (const [index, peak] of many.entries()) expect(peak - (few[index] ?? 0)).toBeLessThan(addedBytes / 2)
})

describeWithPostgres('PostgreSQL: an import', () => {
  test('whose connection is lost during COMMIT has an unknown outcome', async () => {
    await using database = await sharedDatabase()
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
      expect(await refusal(['import', 'animals.ndjson'], { cwd: place.path, env })).toContain('were imported or none;')
    } finally {
      await ask(database.url, 'DROP TRIGGER end_session ON pets; DROP FUNCTION end_session()')
    }
  })
})
