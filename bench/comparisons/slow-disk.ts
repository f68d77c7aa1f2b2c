import { join } from 'node:path'
import { fastify, petstore } from '../contenders/line-up.ts'
import { buildCatalogue } from '../harness/catalogue.ts'
import type { Given } from '../harness/contender.ts'
import type { Effort } from '../harness/effort.ts'
import { ratios, refuseFailures, type Spread, spreadOf } from '../harness/figures.ts'
import { measure } from '../harness/measure.ts'
import { lackOf, type Running, start } from '../harness/start.ts'

/** Durable creates on a disk that takes longer than an SSD. */
export interface SlowDisk {
  readonly ours: Spread
  readonly fastify: Spread
  readonly ratio: Spread | undefined
}

export const fsyncMs = 2
const animals = 1_000
const connections = 64

/** Undefined, with a line that says why, where it cannot be measured here. */
export async function compareOnSlowDisk(effort: Effort): Promise<SlowDisk | undefined> {
  const { session, progress, rounds } = effort
  const lack = process.platform === 'linux' ? lackOf({ programs: ['cc'], ...fastify.needs }) : 'no LD_PRELOAD'
  const shim = lack === undefined ? compileShim(session.folder('shim')) : undefined
  if (!shim) {
    progress.note(`the slow disk is left out: ${lack ?? 'the shim does not compile'} here`)
    return undefined
  }
  progress.begin('slow disk', 2 * rounds)
  const catalogue = await buildCatalogue(`${session.folder('catalogue')}/pets.db`, animals)
  const given: Given = { catalogue }
  await using ours = await start(session, petstore, given, { LD_PRELOAD: shim })
  await using theirs = await start(session, fastify, given, { LD_PRELOAD: shim })
  // Awaited here: with this block both servers end.
  return await compare(effort, ours, theirs)
}

async function compare(effort: Effort, ours: Running, theirs: Running): Promise<SlowDisk | undefined> {
  const rates = { ours: await warm(effort, ours), theirs: await warm(effort, theirs) }
  for (let round = 0; round < effort.rounds; round++) {
    rates.ours.push(await creates(effort, ours))
    rates.theirs.push(await creates(effort, theirs))
  }
  // One commit after another cannot be faster than the disk: else the shim was not called.
  const possible = 1_000 / fsyncMs
  if (Math.max(...rates.theirs) > possible) {
    effort.progress.note('the slow disk is left out: the shim has no effect here')
    return undefined
  }
  return {
    ours: spreadOf(rates.ours),
    fastify: spreadOf(rates.theirs),
    ratio: ratios(rates.ours, rates.theirs),
  }
}

async function warm({ driver, warmingSeconds }: Effort, server: Running): Promise<number[]> {
  await measure(driver, server, { name: 'create', connections }, warmingSeconds)
  return []
}

async function creates({ driver, progress, seconds }: Effort, server: Running): Promise<number> {
  progress.step(`durable create with an fsync of ${fsyncMs} ms: ${server.contender.title}`)
  const sample = await measure(driver, server, { name: 'create', connections }, seconds)
  refuseFailures([sample])
  return sample.requestsPerSecond
}

function compileShim(folder: string): string | undefined {
  const shim = join(folder, 'slow-fsync.so')
  const source = join(import.meta.dir, 'slow-fsync.c')
  const { success } = Bun.spawnSync(
    ['cc', '-shared', '-fPIC', '-O2', `-DFSYNC_MS=${fsyncMs}`, '-o', shim, source],
    { stderr: 'ignore' },
  )
  return success ? shim : undefined
}
