import { join } from 'node:path'
import { chromium, nginx, pgbouncer } from './debian.ts'
import {
  createData,
  own,
  postgresPrograms,
  programsVariable,
  removeCopiedPrograms,
  startCluster,
  templateVariable,
  withoutSync,
} from './postgres.ts'
import { temporaryFolder } from './process.ts'

/**
 * A program that `npm test` starts once. It installs missing Debian packages in CI, starts the PostgreSQL server that the test
 * files share, prints the variables by which they find it as one line of JSON, and stops when its stdin ends.
 */
using folder = temporaryFolder()
await using stack = new AsyncDisposableStack()
stack.defer(removeCopiedPrograms)
await chromium()
await nginx()
await pgbouncer()
process.stdout.write(`${JSON.stringify(await postgresVariables())}\n`)
for await (const _ of Bun.stdin.stream()) {
  // Nothing is written to it; its end is the signal to stop.
}

async function postgresVariables(): Promise<Record<string, string>> {
  const programs = postgresPrograms()
  if (programs instanceof Error) {
    process.stderr.write(`No tests on PostgreSQL: ${programs.message}\n`)
    return {}
  }
  const template = join(folder.path, 'template')
  own(programs, folder.path)
  await createData(programs, template)
  process.env[templateVariable] = template
  const cluster = stack.use(await startCluster(withoutSync))
  return {
    PETSTORE_TEST_POSTGRES_URL: cluster.url(),
    [templateVariable]: template,
    [programsVariable]: programs.folder,
  }
}
