import { join } from 'node:path'
import { openStores } from '../../src/store/open.ts'
import { newDatabase, startCluster } from '../../test/support/postgres.ts'
import { postgresPrograms } from '../../test/support/postgres-program.ts'
import { fastifyOn, petstoreOn } from '../contenders/postgres.ts'
import { buildCatalogue, type Catalogue } from '../harness/catalogue.ts'
import type { Effort } from '../harness/effort.ts'
import { ratios, refuseFailures, type Spread, spreadOf } from '../harness/figures.ts'
import { measure, type Sample } from '../harness/measure.ts'
import { lackOf, type Running, start } from '../harness/start.ts'
import { verify } from '../harness/verify.ts'
import { type Work, works } from '../harness/work.ts'

/** One work, done by both on the same PostgreSQL server, each in a database of its own. */
export interface OnPostgres {
  readonly work: Work
  readonly ours: Side
  readonly fastify: Side
  readonly ratio: Spread | undefined
}

interface Side {
  readonly rate: Spread
  /** Of the contender alone, without the database server's share. */
  readonly cpuMicroseconds: Spread
}

export const postgresAnimals = 100_000
const measured = works.filter(({ name }) => ['list', 'get', 'create'].includes(name))

/** Undefined, with a line that says why, where it cannot be measured here. */
export async function compareOnPostgres(effort: Effort): Promise<readonly OnPostgres[] | undefined> {
  const { session, progress, rounds } = effort
  const programs = postgresPrograms()
  const lack = programs instanceof Error ? programs.message : lackOf(fastifyOn('').needs)
  if (lack !== undefined) {
    progress.note(`PostgreSQL is left out: ${lack}`)
    return undefined
  }
  progress.begin('PostgreSQL', 1 + 2 * rounds * measured.length)
  progress.step(`loading ${postgresAnimals.toLocaleString('en')} animals`)
  const catalogue = await buildCatalogue(`${session.folder('catalogue')}/pets.db`, postgresAnimals)
  await using cluster = await startCluster()
  await using oursIn = await newDatabase(cluster.url())
  await using theirsIn = await newDatabase(cluster.url())
  await loadOurs(catalogue, oursIn.url)
  await loadTheirs(theirsIn.url)
  await using ours = await start(session, petstoreOn(oursIn.url), { catalogue })
  await using theirs = await start(session, fastifyOn(theirsIn.url), { catalogue })
  // Awaited here: with this block everything ends.
  return await compare(effort, ours, theirs)
}

async function compare(effort: Effort, ours: Running, theirs: Running): Promise<readonly OnPostgres[]> {
  for (const server of [ours, theirs]) {
    await verify(server)
    await measure(effort.driver, server, { name: 'mix', connections: 64 }, effort.warmingSeconds)
  }
  const seen = measured.map(work => ({ work, ours: [] as Sample[], theirs: [] as Sample[] }))
  for (let round = 0; round < effort.rounds; round++) {
    for (const each of seen) {
      each.ours.push(await sample(effort, ours, each.work))
      each.theirs.push(await sample(effort, theirs, each.work))
    }
  }
  return seen.map(({ work, ours, theirs }) => ({
    work,
    ours: sideOf(ours),
    fastify: sideOf(theirs),
    ratio: ratios(ratesOf(ours), ratesOf(theirs)),
  }))
}

async function sample(effort: Effort, server: Running, work: Work): Promise<Sample> {
  effort.progress.step(`${work.title}: ${server.contender.title}`)
  const found = await measure(effort.driver, server, work, effort.seconds)
  refuseFailures([found])
  return found
}

const ratesOf = (samples: readonly Sample[]) => samples.map(({ requestsPerSecond }) => requestsPerSecond)

function sideOf(samples: readonly Sample[]): Side {
  return {
    rate: spreadOf(ratesOf(samples)),
    cpuMicroseconds: spreadOf(samples.map(({ cpuMicroseconds }) => cpuMicroseconds ?? Number.NaN)),
  }
}

/** As one would move a catalogue: out of the file, into the database. */
async function loadOurs({ file }: Catalogue, databaseUrl: string): Promise<void> {
  const from = await openStores(`sqlite:${file}`, { create: false })
  const to = await openStores(databaseUrl, { create: true })
  await to.transfer.load(from.transfer.read(), 'keep')
  await from.close()
  await to.close()
}

async function loadTheirs(databaseUrl: string): Promise<void> {
  const program = join(import.meta.dir, '../contenders/pg-load.js')
  const { PATH = '' } = process.env
  const env = { PATH, DATABASE_URL: databaseUrl }
  const load = Bun.spawn(['node', program, String(postgresAnimals)], { env, stderr: 'inherit' })
  if ((await load.exited) !== 0) throw new Error('the catalogue could not be loaded')
}
