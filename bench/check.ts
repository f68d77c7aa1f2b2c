// `npm run bench:check`: has the service become slower, against the same peers, than when the ratios were recorded?
import { comparePeers } from './comparisons/peers.ts'
import { fixedBun } from './contenders/ceilings.ts'
import { fastify, petstore } from './contenders/line-up.ts'
import { showSpread } from './harness/figures.ts'
import { createProgress } from './harness/progress.ts'
import { openSession } from './harness/session.ts'
import { type WorkName, works } from './harness/work.ts'
import { createDriver } from './load/driver.ts'
import { type Recorded, readRecord } from './report/record.ts'
import { ratioTo } from './report/targets.ts'

const least = 0.8
const checked: readonly WorkName[] = ['list', 'get', 'create']
const rounds = 3
const seconds = 2
const warmingSeconds = 3

async function main(): Promise<number> {
  const recorded = readRecord()
  if (!recorded) {
    process.stderr.write('petstore bench: bench/recorded.json cannot be read; npm run bench writes it\n')
    return 1
  }
  const lines = await compare(recorded)
  for (const { text } of lines) process.stdout.write(`${text}\n`)
  const slower = lines.filter(({ ok }) => !ok).length
  process.stdout.write(
    slower === 0 ? 'None has become slower\n' : `${slower} of ${lines.length} have become slower\n`,
  )
  return slower === 0 ? 0 : 1
}

interface Line {
  readonly ok: boolean
  readonly text: string
}

async function compare({ ratios }: Recorded): Promise<readonly Line[]> {
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
  return chosen.flatMap(({ name, title }) =>
    Object.entries(ratios[name] ?? {})
      .filter(([peer]) => peer === fixedBun.name || peer === fastify.name)
      .map(([peer, then]) =>
        lineOf(`${title}, petstore / ${peer}`, then.median, ratioTo({ peers }, peer, name)),
      ),
  )
}

function lineOf(what: string, then: number, now: ReturnType<typeof ratioTo>): Line {
  if (!now) return { ok: true, text: `skipped  ${what}: not measured here` }
  const share = now.median / then
  const ok = share >= least
  const told = `${showSpread(now)} now, ${then.toFixed(2)} recorded: ${share.toFixed(2)} of it, expected at least ${least}`
  return { ok, text: `${ok ? 'ok       ' : 'slower   '}${what}: ${told}` }
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  return 1
})
