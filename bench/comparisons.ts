import { startCluster } from '../test/support/postgres.ts'
import type { Bench } from './bench.ts'
import { buildCatalogue } from './catalogue.ts'
import { type Contender, contenders, petPath, petstore, postgresContenders } from './contenders.ts'
import { compare, measureRounds } from './measure.ts'
import type { Comparison, Part } from './record.ts'
import { start } from './start.ts'
import { captureResponse } from './verify.ts'

const animals = 1_000_000
/** The animal that the fixed-bytes server sends. */
const fixedPetId = 555_555

/** A part that cannot run here is undefined. */
export const comparisons: Record<Part, (bench: Bench) => Promise<Comparison | undefined>> = {
  peers: bench => comparePeers(bench, contenders),
  processes: compareProcesses,
  postgres: compareOnPostgres,
}

export async function comparePeers(bench: Bench, contenders: readonly Contender[]): Promise<Comparison> {
  const catalogue = await buildCatalogue(bench, animals)
  const server = await start(bench, petstore, { catalogue })
  const fixed = {
    list: await captureResponse(`${server.origin}${petstore.paths.list}`),
    get: await captureResponse(`${server.origin}${petPath(petstore.paths, fixedPetId)}`),
  }
  await server[Symbol.asyncDispose]()
  return compare(await measureRounds(bench, { contenders, catalogue, fixed }), petstore.name)
}

/** Two processes of the petstore on one port and one SQLite file, against one. */
async function compareProcesses(bench: Bench): Promise<Comparison | undefined> {
  if (process.platform !== 'linux') return void bench.log('left out: processes share a port on Linux only')
  const contenders = [1, 2].map(
    (processes): Contender => ({
      ...petstore,
      name: String(processes),
      processes,
      workloads: ['list', 'get', 'create'],
      command: place => [...petstore.command(place), '--reuse-port'],
    }),
  )
  const catalogue = await buildCatalogue(bench, animals)
  // Two processes occupy both cores: at a lower priority the load would get none.
  return compare(await measureRounds(bench, { contenders, catalogue, niceness: 0 }), '2')
}

/** The petstore and Bun.sql on the same PostgreSQL server. */
async function compareOnPostgres(bench: Bench): Promise<Comparison | undefined> {
  const cluster = await startCluster().catch((error: Error) => bench.log(`left out: ${error.message}`))
  if (!cluster) return undefined
  await using server = cluster
  // Each contender fills its own database.
  const catalogue = { file: '', animals: 100_000 }
  return compare(await measureRounds(bench, { contenders: postgresContenders(server.url()), catalogue }), petstore.name)
}
