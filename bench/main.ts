// Started by `run.mjs`, which has the help.
import { availableParallelism, cpus, platform, release, totalmem } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readOutput } from '../test/support/process.ts'
import { measure } from './measure.ts'
import { against, parts } from './parts.ts'

async function main(): Promise<void> {
  const options = {
    pairs: { type: 'string' },
    load: { type: 'string', multiple: true },
    against: { type: 'string' },
  } as const
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (!Bun.which('wrk') || availableParallelism() < 2)
    throw new Error('wrk, which sends the load, and two cores are needed')
  const count = Number(values.pairs ?? 9)
  if (!(count >= 1)) throw new Error('--pairs must be at least 1')
  const chosen = values.against ? { against: against(resolve(values.against)) } : parts
  for (const name of positionals.length > 0 ? positionals : Object.keys(chosen)) {
    const part = chosen[name]
    if (!part) throw new Error(`There is no part "${name}": see npm run bench -- --help`)
    const limited = part.map(pair => ({
      ...pair,
      loads: pair.loads.filter(load => values.load?.includes(load) ?? true),
    }))
    const tables = await measure(
      limited.filter(({ loads }) => loads.length > 0),
      count,
    )
    process.stdout.write(`\n## ${name}\n\n${tables}\n\n${await conditions(count)}\n`)
  }
}

/** When, which commit and on which machine. */
async function conditions(count: number): Promise<string> {
  const ask = async (...command: string[]) => (await readOutput(command, { cwd: import.meta.dir })).trim()
  const date = new Date().toISOString().slice(0, 10)
  const commit = await ask('git', 'describe', '--always', '--dirty', '--exclude=*')
  const memoryGb = Math.round(totalmem() / 1024 ** 3)
  const machine = `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, ${memoryGb} GB, ${platform()} ${release()}`
  return `${date}, commit ${commit}, ${count} pairs. ${machine}, Bun ${Bun.version}, Node ${await ask('node', '--version')}.`
}

await main().catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  process.exitCode = 1
})
