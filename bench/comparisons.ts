import type { Bench } from './bench.ts'
import { buildCatalogue } from './catalogue.ts'
import {
  type Contender,
  contenders,
  fixedBun,
  loggingFastify,
  loggingPetstore,
  petstore,
  plainBun,
  postgresContenders,
} from './contenders.ts'
import { measureGrowth } from './growth.ts'
import { measureInstances } from './instances.ts'
import { compare, measureRounds } from './measure.ts'
import type { Comparison, Part, PeerFigures, Recorded } from './record.ts'
import { start, startPostgres } from './start.ts'
import { captureResponses } from './verify.ts'

const animals = 1_000_000

type Measurement<P extends Part> = (bench: Bench) => Promise<NonNullable<Recorded[P]>['figures'] | undefined>

/** A part that cannot run here is undefined. */
export const measurements: { readonly [P in Part]: Measurement<P> } = {
  peers: bench => comparePeers(bench, contenders),
  processes: compareProcesses,
  postgres: compareOnPostgres,
  instances: measureInstances,
  growth: measureGrowth,
}

const logging = [loggingPetstore, loggingFastify].map(({ name }) => name)
const comparedWithLogging = [...logging, fixedBun.name, plainBun.name]

export async function comparePeers(bench: Bench, contenders: readonly Contender[]): Promise<PeerFigures> {
  const catalogue = await buildCatalogue(bench, animals)
  const server = await start(bench, petstore, { catalogue })
  const fixed = await captureResponses(server.origin)
  await server[Symbol.asyncDispose]()
  const samples = await measureRounds(bench, { contenders, catalogue, fixed })
  return {
    quiet: compare(
      samples.filter(({ contender }) => !logging.includes(contender)),
      petstore.name,
    ),
    logging: compare(
      samples.filter(({ contender }) => comparedWithLogging.includes(contender)),
      loggingPetstore.name,
    ),
  }
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
  return compare(await measureRounds(bench, { contenders, catalogue, sending: { niceness: 0 } }), '2')
}

/** The petstore and Bun.sql on the same PostgreSQL server. */
async function compareOnPostgres(bench: Bench): Promise<Comparison | undefined> {
  const cluster = await startPostgres(bench)
  if (!cluster) return undefined
  await using server = cluster
  // Each contender fills its own database.
  const catalogue = { file: '', animals: 100_000 }
  return compare(await measureRounds(bench, { contenders: postgresContenders(server.url()), catalogue }), petstore.name)
}
