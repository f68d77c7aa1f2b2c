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
  readonly inGroups: CommitFigures
  readonly oneByOne: CommitFigures
  /** Creates a second, in groups against one by one. */
  readonly gain: Spread | undefined
}

interface CommitFigures {
  readonly createsPerSecond: Spread
  readonly aloneP99Ms: Spread
  readonly meanwhileP99Ms: Spread
  /** Readers' p99 with writers, against without. */
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
  const rates = (all: readonly Round[]) => all.map(({ creating }) => creating.requestsPerSecond)
  return {
    inGroups: figuresOf(inGroups),
    oneByOne: figuresOf(oneByOne),
    gain: ratios(rates(inGroups), rates(oneByOne)),
  }
}

type Round = Awaited<ReturnType<typeof round>>

async function round({ session, driver, progress, seconds }: Effort, contender: Contender, given: Given) {
  progress.step(`${creators} create while ${readers} read: ${contender.title}`)
  await using server = await start(session, contender, given)
  const requests = contender.requests('create', animals)
  const create = (duration: number) =>
    driver.drive({ origin: server.origin, requests, connections: creators, seconds: duration })
  const read = () => readPaced(`${server.origin}/v1/pets`, readers, readEveryMs, seconds)
  // The code is warm before anything is timed.
  await create(1)
  const alone = await read()
  const [creating, meanwhile] = await Promise.all([create(seconds), read()])
  refuseFailures([alone, creating, meanwhile])
  return { alone, creating, meanwhile }
}

function figuresOf(rounds: readonly Round[]): CommitFigures {
  const alone = rounds.map(each => each.alone.p99Ms)
  const meanwhile = rounds.map(each => each.meanwhile.p99Ms)
  return {
    createsPerSecond: spreadOf(rounds.map(each => each.creating.requestsPerSecond)),
    aloneP99Ms: spreadOf(alone),
    meanwhileP99Ms: spreadOf(meanwhile),
    delay: ratios(meanwhile, alone),
  }
}
