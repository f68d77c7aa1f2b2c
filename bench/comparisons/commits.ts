import { commitEachPetstore, petstore } from '../contenders/line-up.ts'
import { buildCatalogue } from '../harness/catalogue.ts'
import type { Contender, Given } from '../harness/contender.ts'
import type { Effort } from '../harness/effort.ts'
import { ratios, refuseFailures, type Spread, spreadOf } from '../harness/figures.ts'
import { start } from '../harness/start.ts'
import { readPaced } from '../load/paced.ts'

export const creators = 32
export const readers = 8
export const readEveryMs = 10
const animals = 1_000

/** Committing in groups, by a thread of its own, against committing each POST on the thread that serves. */
export interface Commits {
  /** Readers that ask again as soon as they are answered, as every other load here. */
  readonly eager: Contrast & {
    /** What the readers got meanwhile: they take what the creations leave. */
    readonly readsPerSecond: Both
  }
  /** Readers that ask once in a while, as pages do that refresh themselves. */
  readonly paced: Contrast
}

interface Contrast {
  readonly createsPerSecond: Both
  readonly inGroups: ReaderFigures
  readonly oneByOne: ReaderFigures
}

/** In groups, one by one, and the first against the second. */
export interface Both {
  readonly inGroups: Spread
  readonly oneByOne: Spread
  readonly gain: Spread | undefined
}

export interface ReaderFigures {
  readonly aloneP99Ms: Spread
  readonly meanwhileP99Ms: Spread
  /** Their p99 with writers, against without. */
  readonly delay: Spread | undefined
}

export async function compareCommits(effort: Effort): Promise<Commits> {
  const { rounds, session, progress } = effort
  progress.begin('commits', 2 * rounds)
  const catalogue = await buildCatalogue(`${session.folder('catalogue')}/pets.db`, animals)
  const given: Given = { catalogue }
  const inGroups: Round[] = []
  const oneByOne: Round[] = []
  for (let i = 0; i < rounds; i++) {
    inGroups.push(await round(effort, petstore, given))
    oneByOne.push(await round(effort, commitEachPetstore, given))
  }
  const contrast = (kind: 'eager' | 'paced') => {
    const [grouped, single] = [inGroups, oneByOne].map(rounds => rounds.map(round => round[kind]))
    return contrastOf(grouped ?? [], single ?? [])
  }
  const reads = (rounds: readonly Round[]) => rounds.map(({ eager }) => eager.readsPerSecond)
  return {
    eager: { ...contrast('eager'), readsPerSecond: bothOf(reads(inGroups), reads(oneByOne)) },
    paced: contrast('paced'),
  }
}

interface Round {
  readonly eager: Reading & { readonly readsPerSecond: number }
  readonly paced: Reading
}

interface Reading {
  readonly createsPerSecond: number
  readonly aloneP99Ms: number
  readonly meanwhileP99Ms: number
}

async function round(effort: Effort, contender: Contender, given: Given): Promise<Round> {
  const { session, driver, progress, seconds } = effort
  progress.step(`${creators} create while ${readers} read: ${contender.title}`)
  await using server = await start(session, contender, given)
  const drive = (work: 'create' | 'list', connections: number, duration = seconds) =>
    driver.drive({
      origin: server.origin,
      requests: contender.requests(work, animals),
      connections,
      seconds: duration,
    })
  const paced = () => readPaced(`${server.origin}/v1/pets`, readers, readEveryMs, seconds)
  // The code is warm before anything is timed.
  await drive('create', creators, 1)
  const eagerAlone = await drive('list', readers)
  const pacedAlone = await paced()
  const [creating, eagerMeanwhile] = await Promise.all([drive('create', creators), drive('list', readers)])
  const [alsoCreating, pacedMeanwhile] = await Promise.all([drive('create', creators), paced()])
  refuseFailures([eagerAlone, pacedAlone, creating, eagerMeanwhile, alsoCreating, pacedMeanwhile])
  return {
    eager: {
      createsPerSecond: creating.requestsPerSecond,
      readsPerSecond: eagerMeanwhile.requestsPerSecond,
      aloneP99Ms: eagerAlone.p99Ms,
      meanwhileP99Ms: eagerMeanwhile.p99Ms,
    },
    paced: {
      createsPerSecond: alsoCreating.requestsPerSecond,
      aloneP99Ms: pacedAlone.p99Ms,
      meanwhileP99Ms: pacedMeanwhile.p99Ms,
    },
  }
}

function contrastOf(inGroups: readonly Reading[], oneByOne: readonly Reading[]): Contrast {
  const creates = (all: readonly Reading[]) => all.map(({ createsPerSecond }) => createsPerSecond)
  return {
    createsPerSecond: bothOf(creates(inGroups), creates(oneByOne)),
    inGroups: readersOf(inGroups),
    oneByOne: readersOf(oneByOne),
  }
}

function bothOf(inGroups: readonly number[], oneByOne: readonly number[]): Both {
  return {
    inGroups: spreadOf(inGroups),
    oneByOne: spreadOf(oneByOne),
    gain: ratios(inGroups, oneByOne),
  }
}

function readersOf(readings: readonly Reading[]): ReaderFigures {
  const alone = readings.map(({ aloneP99Ms }) => aloneP99Ms)
  const meanwhile = readings.map(({ meanwhileP99Ms }) => meanwhileP99Ms)
  return {
    aloneP99Ms: spreadOf(alone),
    meanwhileP99Ms: spreadOf(meanwhile),
    delay: ratios(meanwhile, alone),
  }
}
