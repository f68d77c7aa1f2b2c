import { SQL } from 'bun'
import { openStores } from '../../src/store/open.ts'
import { postgresSetupError } from '../../src/store/postgres/errors.ts'
import { type PostgresAddress, parsePostgresUrl } from '../../src/store/postgres/url.ts'
import { newDatabase } from '../support/postgres.ts'

/**
 * `npm run test:engine -- URL`: whether the service works with a PostgreSQL-compatible database. Exit code 1 if it does not,
 * 2 if it cannot be tested.
 */
const usage = 'usage: npm run test:engine -- postgres://USER:PASSWORD@HOST:PORT/DATABASE'

const parts: readonly (readonly [title: string, file: string])[] = [
  ['Store contract', './test/store/postgres.test.ts'],
  ['Conformance of a server on it', './test/conform/ours.test.ts'],
  ['Several instances, and followers that must miss no animal', './test/store/postgres-instances.test.ts'],
]

const [url = '', ...others] = process.argv.slice(2)
const address = others.length === 0 ? parsePostgresUrl(url) : undefined
process.exitCode = address?.hosts.length === 1 ? await testEngine(url, address) : fail(usage)

async function testEngine(url: string, { location }: PostgresAddress): Promise<number> {
  const version = await versionOf(url).catch((error: unknown) =>
    fail(messageOf(postgresSetupError(error, location)).replaceAll('DATABASE_URL', 'the URL')),
  )
  if (typeof version === 'number') return version
  print(`${version}
The tests create databases named catalogue_… on this server, several at once, and drop them. They do not change
${location}. They take about two minutes.`)
  const failed = []
  for (const [title, file] of parts) {
    print(`\n${title}:`)
    if ((await runTests(url, file)) !== 0) failed.push(title)
  }
  print(failed.length === 0 ? '\nPassed: the service works with it' : `\nFailed: do not use it: ${failed.join('; ')}`)
  return failed.length === 0 ? 0 : 1
}

/** Fails if the tests must not or cannot run there. */
async function versionOf(url: string): Promise<string> {
  await using sql = new SQL(url, { max: 1, connectionTimeout: 5 })
  const [{ version }] = await sql`SELECT version()`
  const animals = await sql`SELECT 1 FROM pets LIMIT 1`.catch((error: unknown) => {
    if (error instanceof SQL.PostgresError && error.errno === '42P01') return []
    throw error
  })
  if (animals.length > 0) throw new Error('The database holds animals: name one on a server that is only for tests')
  await using database = await newDatabase(url).catch((error: unknown) => {
    throw new Error(`Cannot create a database: ${messageOf(error)}; the user needs the right CREATEDB`)
  })
  await (await openStores(database.url, { create: true })).close()
  return version
}

function runTests(url: string, file: string): Promise<number> {
  const env = {
    ...process.env,
    PETSTORE_TEST_POSTGRES_URL: url,
    PETSTORE_TEST_STORE: 'postgres',
    PETSTORE_TEST_WRITING_ROUNDS: '1000',
  }
  const command = [process.execPath, '--no-env-file', 'test', '--only-failures', file]
  return Bun.spawn(command, { env, stdio: ['ignore', 'inherit', 'inherit'] }).exited
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function fail(message: string): number {
  process.stderr.write(`${message}\n`)
  return 2
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
