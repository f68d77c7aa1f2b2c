import { describe } from 'bun:test'
import { type Cluster, newDatabase, startCluster, type TestDatabase } from './postgres.ts'
import { postgresPrograms } from './postgres-program.ts'

/** A server that is there already, and on which databases may be made; else one is started. */
const givenUrl = process.env['PETSTORE_TEST_POSTGRES_URL']
const mustRun = process.env['CI'] === 'true'

let shared: Promise<Cluster> | undefined

/** An empty database on the server that all tests share. */
export async function sharedDatabase(): Promise<TestDatabase> {
  if (givenUrl) return newDatabase(givenUrl)
  shared ??= startCluster()
  return newDatabase((await shared).url())
}

export async function stopSharedCluster(): Promise<void> {
  await (await shared)?.[Symbol.asyncDispose]()
}

/** Tests that need PostgreSQL: where it cannot be had they are skipped with a line that says why, but never in CI. */
export function describeWithPostgres(name: string, tests: () => void): void {
  const programs = postgresPrograms()
  const obstacle = !givenUrl && programs instanceof Error ? programs.message : undefined
  describeUnless(obstacle, name, tests)
}

/** The same for tests that stop the server, which is not done to one that was there already. */
export function describeWithOwnPostgres(name: string, tests: () => void): void {
  const programs = postgresPrograms()
  describeUnless(programs instanceof Error ? programs.message : undefined, name, tests)
}

function describeUnless(obstacle: string | undefined, name: string, tests: () => void): void {
  const skipped = obstacle !== undefined && !mustRun
  if (skipped) process.stdout.write(`Skipped: ${name}: ${obstacle}\n`)
  describe.skipIf(skipped)(skipped ? `${name} (skipped: ${obstacle})` : name, tests)
}
