// `npm run bench:check`: has the service become slower, against the same peers, than when the ratios were recorded?
import { comparePeers, type Seen } from './comparisons/peers.ts'
import { fixedBun } from './contenders/ceilings.ts'
import { fastify, petstore } from './contenders/line-up.ts'
import { type Spread, showSpread } from './harness/figures.ts'
import { createProgress } from './harness/progress.ts'
import { openSession } from './harness/session.ts'
import { type WorkName, works } from './harness/work.ts'
import { createDriver } from './load/driver.ts'
import { type Recorded, readRecord } from './report/record.ts'
import { ratioTo } from './report/targets.ts'

const least = 0.8
/** A shared machine has bad minutes: what looks slower is measured again, and the median of all rounds counts. */
const attempts = 3
const everyCheck: readonly WorkName[] = ['list', 'get', 'create']
const rounds = 3
const seconds = 2
const warmingSeconds = 3

async function main(): Promise<number> {
  const recorded = readRecord()
  if (!recorded) {
    process.stderr.write('petstore bench: bench/recorded.json cannot be read; npm run bench writes it\n')
    return 1
  }
  let peers = await measurePeers(everyCheck)
  let lines = compare(recorded, peers)
  for (let tried = 1; tried < attempts && lines.some(isSlower); tried++) {
    const again = await measurePeers(lines.filter(isSlower).map(({ work }) => work))
    peers = peers.map(seen => withRoundsOf(seen, again))
    lines = compare(recorded, peers)
  }
  for (const line of lines) process.stdout.write(`${show(line)}\n`)
  const slower = lines.filter(isSlower).length
  process.stdout.write(
    slower === 0 ? 'None has become slower\n' : `${slower} of ${lines.length} have become slower\n`,
  )
  return slower === 0 ? 0 : 1
}

interface Line {
  readonly work: WorkName
  readonly what: string
  /** As it was recorded. */
  readonly then: number
  /** Absent where it could not be measured. */
  readonly now: Spread | undefined
}

async function measurePeers(checked: readonly WorkName[]): Promise<readonly Seen[]> {
  await using session = openSession()
  const progress = createProgress()
  const effort = {
    rounds,
    seconds,
    warmingSeconds,
    quick: true,
    session,
    driver: createDriver(session),
    progress,
  }
  const chosen = works.filter(({ name }) => checked.includes(name))
  const peers = await comparePeers(effort, [petstore, fixedBun, fastify], chosen)
  progress.end()
  return peers
}

/** The same contender, with the rounds that were measured again beside those before. */
function withRoundsOf(seen: Seen, again: readonly Seen[]): Seen {
  const more = again.find(({ contender }) => contender === seen.contender)?.samples ?? {}
  const samples = everyCheck.map(work => [work, [...(seen.samples[work] ?? []), ...(more[work] ?? [])]])
  return { ...seen, samples: Object.fromEntries(samples) }
}

function compare({ ratios }: Recorded, peers: readonly Seen[]): readonly Line[] {
  const chosen = works.filter(({ name }) => everyCheck.includes(name))
  return chosen.flatMap(({ name, title }) =>
    Object.entries(ratios[name] ?? {})
      .filter(([peer]) => peer === fixedBun.name || peer === fastify.name)
      .map(([peer, { median: then }]) => ({
        work: name,
        what: `${title}, petstore / ${peer}`,
        then,
        now: ratioTo({ peers }, peer, name),
      })),
  )
}

function isSlower({ then, now }: Line): boolean {
  return now !== undefined && now.median < least * then
}

function show(line: Line): string {
  const { what, then, now } = line
  if (!now) return `skipped  ${what}: not measured here`
  const share = (now.median / then).toFixed(2)
  const told = `${showSpread(now)} now, ${then.toFixed(2)} recorded: ${share} of it, expected at least ${least}`
  return `${isSlower(line) ? 'slower  ' : 'ok      '} ${what}: ${told}`
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  return 1
})
