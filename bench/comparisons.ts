import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildCatalogue, type Catalogue } from './catalogue.ts'
import { type Contender, fastify, petstore, postgresContenders } from './contenders.ts'
import { type Bench, measureRounds, type Plan, Results, withCluster } from './measure.ts'
import type { Comparison, PostgresComparison } from './record.ts'
import { freePort, start } from './start.ts'
import { captureResponses } from './verify.ts'
import { selectWorkloads, type Workload } from './workloads.ts'

/** More than a million, so that animals follow the deep page. */
const peerAnimals = 1_000_200
/** The animal that the fixed-bytes servers send. */
const fixedPetId = 555_555

/** Adds rounds to the given results. */
export async function measurePeers(bench: Bench, plan: Omit<Plan, 'given'>, results = new Results()): Promise<Results> {
  const catalogue = await newCatalogue(bench, peerAnimals)
  const server = await start(bench.session, petstore, { catalogue })
  const responses = await captureResponses(server, fixedPetId)
  await server[Symbol.asyncDispose]()
  return measureRounds(bench, { ...plan, given: { catalogue, responses } }, results)
}

function newCatalogue(bench: Bench, animals: number): Promise<Catalogue> {
  bench.log(`creating a catalogue of ${animals.toLocaleString('en')} animals`)
  return buildCatalogue(bench.session, animals)
}

/** The petstore with two serving threads against one. */
export async function compareThreads(bench: Bench): Promise<Comparison> {
  const contenders = ['1', '2'].map(
    (threads): Contender => ({
      ...petstore,
      name: threads,
      title: `petstore --threads ${threads}`,
      command: place => [...petstore.command(place), '--threads', threads],
    }),
  )
  const given = { catalogue: await newCatalogue(bench, peerAnimals) }
  const workloads = selectWorkloads('list', 'get', 'create')
  return (await measureRounds(bench, { contenders, workloads, given, samePriority: true, warmUpEach: true })).compare(
    '2',
  )
}

const postgresAnimals = 100_000
const instancesAtDistance = 4

/** The petstore, Bun.sql and Fastify on the same PostgreSQL server. */
export function compareOnPostgres(bench: Bench): Promise<PostgresComparison | undefined> {
  return withCluster(bench, async cluster => {
    // Each contender fills its own database.
    const given = { catalogue: { file: '', animals: postgresAnimals } }
    const serverUrl = cluster.url()
    const compare = async (contenders: readonly Contender[], workloads: readonly Workload[]) =>
      (await measureRounds(bench, { contenders, workloads, given })).compare('petstore')
    const contendersUrl = await startDistance(bench, serverUrl)
    const compareAtDistance = (instances: number) => {
      const { petstore, bunSql } = postgresContenders({ serverUrl, contendersUrl, instances })
      const workloads = selectWorkloads('keyed').map(each => ({ ...each, connections: each.connections * instances }))
      return compare([petstore, bunSql], workloads)
    }
    return {
      local: await compare(
        Object.values(postgresContenders({ serverUrl })),
        selectWorkloads('list', 'get', 'create', 'keyed'),
      ),
      distant: await compareAtDistance(1),
      distantFour: await compareAtDistance(instancesAtDistance),
    }
  })
}

/** Returns the address of a server that is 5 ms away. */
async function startDistance({ session }: Bench, serverUrl: string): Promise<string> {
  const url = new URL(serverUrl)
  const port = String(await freePort())
  const script = join(import.meta.dir, 'distance.js')
  session.spawn([process.execPath, '--no-env-file', script, port, url.port], { stdout: 'ignore', stderr: 'inherit' })
  url.port = port
  return url.href
}

/** The petstore with catalogues of several sizes, the smallest first. */
export async function compareGrowth(bench: Bench, sizes: readonly number[]): Promise<Comparison> {
  const catalogues: Catalogue[] = []
  for (const size of sizes) catalogues.push(await newCatalogue(bench, size))
  const contenders = catalogues.map(
    (catalogue): Contender => ({
      ...petstore,
      name: String(catalogue.animals),
      title: `petstore with ${catalogue.animals.toLocaleString('en')} animals`,
      animalsMax: catalogue.animals,
      prepare: ({ file }) => copyFileSync(catalogue.file, file),
    }),
  )
  const given = { catalogue: { file: '', animals: Math.max(...sizes) } }
  const workloads = selectWorkloads('list', 'filtered', 'deep', 'get', 'create')
  const results = await measureRounds(bench, { contenders, workloads, given })
  return results.compare(String(sizes[0]), 'cost')
}

const fsyncMs = 2

/** Creations on a disk whose fsync takes 2 ms. */
export async function compareOnSlowDisk(bench: Bench): Promise<Comparison | undefined> {
  const library = compileSlowFsync(bench)
  if (library === undefined) return undefined
  const contenders = [petstore, fastify].map(each => ({ ...each, env: { LD_PRELOAD: library } }))
  const given = { catalogue: await newCatalogue(bench, 1_000) }
  const results = await measureRounds(bench, { contenders, workloads: selectWorkloads('create'), given })
  const comparison = results.compare('petstore')
  // Fastify commits one creation after another, so it cannot be faster than the disk.
  const fastifyRate = comparison.workloads.create?.[fastify.name]?.requestsPerSecond ?? 0
  if (fastifyRate <= 1_000 / fsyncMs) return comparison
  bench.log('left out: LD_PRELOAD has no effect here')
  return undefined
}

function compileSlowFsync(bench: Bench): string | undefined {
  const library = join(bench.session.folder('slow-fsync'), 'slow-fsync.so')
  const source = join(import.meta.dir, 'slow-fsync.c')
  const flags = ['-shared', '-fPIC', '-O2', `-DFSYNC_MS=${fsyncMs}`]
  const works =
    process.platform === 'linux' &&
    Bun.which('cc') !== null &&
    Bun.spawnSync(['cc', ...flags, '-o', library, source], { stderr: 'ignore' }).success
  if (works) return library
  bench.log('left out: the slow disk needs Linux and a C compiler')
  return undefined
}
