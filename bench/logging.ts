import { contenders, type Running, start } from './contender.ts'
import { median, refuseFailures, spread } from './figures.ts'
import type { Effort } from './run.ts'
import { drive } from './wrk.ts'

const connections = 64

/** What a line for each request costs: both servers run at once and are asked in turn, so that the machine is the same. */
export async function compareLogging({ rounds, seconds, progress }: Effort): Promise<string[]> {
  await using logging = await start(contenders.ours)
  await using silent = await start(contenders.silent)
  await Promise.all([fill(logging), fill(silent)])
  const rates: { logging: number; silent: number }[] = []
  for (let i = 1; i <= rounds; i++) {
    progress(`logging, round ${i} of ${rounds}`)
    rates.push({ logging: await rate(logging, seconds), silent: await rate(silent, seconds) })
  }
  const ratio = rates.map(each => each.logging / each.silent)
  const typical = (which: 'logging' | 'silent') => median(rates.map(each => each[which])).toFixed(0)
  return [
    `list of 20 with ${connections} connections: ${rounds} rounds of ${seconds} s`,
    `  requests a second: ${typical('logging')} with a line for each in the log, ${typical('silent')} without; ratio ${spread(ratio)}`,
  ]
}

async function fill({ url }: Running): Promise<void> {
  await drive({ url: `${url}/pets`, connections: 8, seconds: 1, script: 'create.lua' })
}

async function rate({ url }: Running, seconds: number): Promise<number> {
  const measured = await drive({ url: `${url}/pets`, connections, seconds })
  refuseFailures([measured])
  return measured.requestsPerSecond
}
