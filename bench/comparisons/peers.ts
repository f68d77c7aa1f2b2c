import { fixedBun } from '../contenders/ceilings.ts'
import { petstore } from '../contenders/line-up.ts'
import { buildCatalogue } from '../harness/catalogue.ts'
import type { Contender, Given } from '../harness/contender.ts'
import type { Effort } from '../harness/effort.ts'
import { measure, type Sample } from '../harness/measure.ts'
import { captureAnswers } from '../harness/our-answers.ts'
import { lackOf, type Running, start } from '../harness/start.ts'
import { verify } from '../harness/verify.ts'
import { showWork, type Work, type WorkName } from '../harness/work.ts'

/** What was seen of one contender: one figure for each round. */
export interface Seen {
  readonly contender: Contender
  readonly firstAnswerMs: number[]
  readonly peakBytes: number[]
  readonly samples: Partial<Record<WorkName, Sample[]>>
}

/** A page a million animals deep has animals behind it. */
export const peerAnimals = 1_000_200

/** All contenders do the same work: started anew for each round, then asked in turn, work by work. */
export async function comparePeers(
  effort: Effort,
  contenders: readonly Contender[],
  works: readonly Work[],
): Promise<readonly Seen[]> {
  const { rounds, progress } = effort
  const able = contenders.filter(contender => isAble(contender, effort))
  progress.begin(
    'contenders',
    1 + rounds * able.reduce((sum, each) => sum + 1 + workOf(each, works).length, 0),
  )
  const given = await prepare(effort)
  const seen = able.map(contender => ({ contender, firstAnswerMs: [], peakBytes: [], samples: {} }))
  const wrong = new Set<Seen>()
  for (let round = 0; round < rounds; round++) {
    // Whoever comes first in one round comes last in the next.
    const turn = seen.map((_, i) => seen[(i + round) % seen.length]).filter(each => each !== undefined)
    await playRound(effort, given, works, turn, wrong)
  }
  return seen.filter(each => !wrong.has(each))
}

function isAble({ title, needs }: Contender, { progress }: Effort): boolean {
  const lack = lackOf(needs)
  if (lack) progress.note(`${title} is left out: ${lack} here`)
  return lack === undefined
}

function workOf(contender: Contender, works: readonly Work[]): readonly Work[] {
  return works.filter(({ name }) => contender.works.includes(name))
}

/** The catalogue, and what our own server answers from it. */
async function prepare({ session, progress }: Effort): Promise<Given> {
  progress.step(`building a catalogue of ${peerAnimals.toLocaleString('en')} animals`)
  const catalogue = await buildCatalogue(`${session.folder('catalogue')}/pets.db`, peerAnimals)
  await using ours = await start(session, petstore, { catalogue })
  return { catalogue, answers: await captureAnswers(ours.origin, petOfCeiling) }
}

/** The ceilings give this animal to whoever asks for one. */
const petOfCeiling = 555_555

async function playRound(
  effort: Effort,
  given: Given,
  works: readonly Work[],
  seen: readonly Seen[],
  wrong: Set<Seen>,
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const servers: { readonly server: Running; readonly seen: Seen }[] = []
  for (const each of seen) {
    if (wrong.has(each)) continue
    const server = await startChecked(effort, given, each).catch(error =>
      leaveOut(error, each, effort, wrong),
    )
    if (server) servers.push({ server: stack.use(server), seen: each })
  }
  for (const work of works) {
    for (const { server, seen } of servers) {
      if (server.contender.works.includes(work.name)) await sample(effort, server, seen, work)
    }
  }
  for (const { server, seen } of servers) {
    const usage = server.usage()
    if (usage) seen.peakBytes.push(usage.peakBytes)
  }
}

async function startChecked(effort: Effort, given: Given, seen: Seen): Promise<Running> {
  const { session, driver, progress, warmingSeconds } = effort
  progress.step(`starting and checking ${seen.contender.title}`)
  const server = await start(session, seen.contender, given)
  try {
    seen.firstAnswerMs.push(server.firstAnswerMs)
    await verify(server, given.answers)
    const name = seen.contender.works.includes('mix') ? 'mix' : 'list'
    await measure(driver, server, { name, connections: 64 }, warmingSeconds)
    return server
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

/** Without our own server, or its ceiling, there is nothing to compare with. */
function leaveOut(error: unknown, seen: Seen, { progress }: Effort, wrong: Set<Seen>): undefined {
  if (seen.contender === petstore || seen.contender === fixedBun) throw error
  wrong.add(seen)
  progress.note(`${seen.contender.title} is left out: ${(error as Error).message}`)
}

async function sample(effort: Effort, server: Running, seen: Seen, work: Work): Promise<void> {
  const { driver, progress, seconds } = effort
  progress.step(`${showWork(work)}: ${seen.contender.title}`)
  const measured = await measure(driver, server, work, seconds)
  if (measured.failures > 0) {
    const what = `${seen.contender.title}, ${showWork(work)}`
    progress.note(`${what}: ${measured.failures} of ${measured.requests} requests failed; not counted`)
  }
  seen.samples[work.name] ??= []
  seen.samples[work.name]?.push(measured)
}

/** The rounds of one contender's work; none where requests failed, because such figures mean nothing. */
export function samplesOf(seen: Seen | undefined, work: WorkName): readonly Sample[] {
  const samples = seen?.samples[work] ?? []
  return samples.some(({ failures }) => failures > 0) ? [] : samples
}

export function ratesOf(seen: Seen | undefined, work: WorkName): readonly number[] {
  return samplesOf(seen, work).map(({ requestsPerSecond }) => requestsPerSecond)
}
