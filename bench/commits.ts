import { type Contender, contenders, start } from './contender.ts'
import { median, refuseFailures, spread } from './figures.ts'
import { readPaced } from './paced.ts'
import type { Effort } from './run.ts'
import { drive } from './wrk.ts'

const creators = 32
const readers = 8
const readEveryMs = 10

/** Committing in groups, by a thread of its own, against committing each POST on the thread that serves. */
export async function compareCommits({ rounds, seconds, progress }: Effort): Promise<string[]> {
  const ours: Round[] = []
  const each: Round[] = []
  for (let i = 1; i <= rounds; i++) {
    progress(`commits, round ${i} of ${rounds}`)
    ours.push(await round(contenders.ours, seconds))
    each.push(await round(contenders.commitEach, seconds))
  }
  const rate = (all: readonly Round[]) =>
    median(all.map(({ creating }) => creating.requestsPerSecond)).toFixed(0)
  const gain = ours.map(
    (own, i) => own.creating.requestsPerSecond / (each[i]?.creating.requestsPerSecond ?? 0),
  )
  const p99 = (all: readonly Round[], when: 'alone' | 'meanwhile') =>
    median(all.map(each => each[when].p99Ms)).toFixed(1)
  const delay = (all: readonly Round[]) =>
    spread(all.map(({ alone, meanwhile }) => meanwhile.p99Ms / alone.p99Ms))
  return [
    `${creators} connections create, ${readers} list every ${readEveryMs} ms: ${rounds} rounds of ${seconds} s`,
    `  durable creates a second: ${rate(ours)} in groups, ${rate(each)} one by one; ratio ${spread(gain)}`,
    `  readers' p99 with writers / without: ${delay(ours)} in groups, ${delay(each)} one by one`,
    `  readers' p99 in ms, without writers and with: ${p99(ours, 'alone')} and ${p99(ours, 'meanwhile')} in groups, ${p99(each, 'alone')} and ${p99(each, 'meanwhile')} one by one`,
  ]
}

type Round = Awaited<ReturnType<typeof round>>

async function round(contender: Contender, seconds: number) {
  await using server = await start(contender)
  const pets = `${server.url}/pets`
  const create = (duration: number) =>
    drive({ url: pets, connections: creators, seconds: duration, script: 'create.lua' })
  const read = () => readPaced(pets, readers, readEveryMs, seconds)
  // The list has something to show, and the code is warm, before anything is timed.
  await create(1)
  const alone = await read()
  const [creating, meanwhile] = await Promise.all([create(seconds), read()])
  refuseFailures([alone, creating, meanwhile])
  return { alone, creating, meanwhile }
}
