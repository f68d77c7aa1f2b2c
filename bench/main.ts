// Started by `run.mjs`, which has the help.
import { availableParallelism, cpus, release } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readOutput } from '../test/support/process.ts'
import { measure } from './measure.ts'
import { against, parts } from './parts.ts'

const options = { pairs: { type: 'string' }, load: { type: 'string' }, against: { type: 'string' } } as const

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (!Bun.which('wrk') || availableParallelism() < 2) throw new Error('it needs wrk, to send the load, and two cores')
  const count = Number(values.pairs ?? 5)
  if (!(count >= 1)) throw new Error('--pairs must be at least 1')
  const chosen = values.against ? { against: against(resolve(values.against)) } : parts
  const names = positionals.length > 0 ? positionals : Object.keys(chosen)
  const unknown = names.find(name => !chosen[name])
  if (unknown) throw new Error(`There is no part "${unknown}": see npm run bench -- --help`)
  const when = await conditions(count)
  for (const name of names) {
    const tables = await measure(chosen[name] ?? [], count, values.load)
    process.stdout.write(`\n## ${name}\n\n${tables}\n\n${when}\n`)
  }
}

/** When, which commit and on which machine. */
async function conditions(count: number): Promise<string> {
  const ask = async (...command: string[]) => (await readOutput(command, { cwd: import.meta.dir })).trim()
  const commit = await ask('git', 'describe', '--always', '--dirty', '--exclude=*')
  const machine = `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, Linux ${release()}`
  const runtimes = `Bun ${Bun.version}, Node ${await ask('node', '--version')}`
  return `${new Date().toISOString().slice(0, 10)}, commit ${commit}, ${count} pairs. ${machine}, ${runtimes}.`
}

await main().catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  process.exitCode = 1
})
