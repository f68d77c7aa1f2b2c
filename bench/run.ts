// `npm run bench`: measures the petstore and other servers under the same loads.
import { parseArgs } from 'node:util'
import { Catalogues } from './catalogues.ts'
import { type Part, parts, withCheckout } from './contenders.ts'
import { allLoads } from './loads.ts'
import { measure } from './measure.ts'
import { conditions, tablesOf, writeSection } from './report.ts'

const [roundsDefault, secondsDefault] = [9, 5]
const partLines = Object.entries(parts).map(([name, { title }]) => `  ${name.padEnd(20)} ${title}`)

const usage = `Measures the petstore and other servers under the same loads. Needs wrk.

Usage: npm run bench -- [part…] [options]

Parts, all by default:
${partLines.join('\n')}

Options:
  --rounds <n>         ${roundsDefault} by default
  --seconds <n>        of each load in each round; ${secondsDefault} by default
  --contender <text>   only contenders with this text in their name; may be repeated
  --load <name>        only this load: ${allLoads.join(', ')}; may be repeated
  --against <folder>   also the petstore of another checkout, to see whether a change is faster

Prints tables. Without options, they also replace those in docs/.

Examples:
  npm run bench -- peers
  npm run bench -- peers --rounds 1 --seconds 1
  npm run bench -- peers postgres --against ../before --contender petstore --load get
`

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      contender: { type: 'string', multiple: true },
      load: { type: 'string', multiple: true },
      against: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) return void process.stdout.write(usage)
  if (!Bun.which('wrk')) throw new Error('wrk is not installed: install it to send the load')
  const [rounds, seconds] = [Number(values.rounds ?? roundsDefault), Number(values.seconds ?? secondsDefault)]
  if (!(rounds >= 1 && seconds >= 1)) throw new Error('--rounds and --seconds must be at least 1')
  const names = positionals.length > 0 ? positionals : Object.keys(parts)
  const chosen = names.map(name => ({ name, part: limited(name, values.contender, values.load, values.against) }))
  await using catalogues = new Catalogues()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => catalogues[Symbol.asyncDispose]().finally(() => process.exit(130)))
  }
  for (const { name, part } of chosen) {
    const samples = await measure(part, rounds, seconds, catalogues)
    const section = `${tablesOf(part, samples)}\n\n${conditions(rounds, seconds)}`
    process.stdout.write(`\n## ${name}\n\n${section}\n`)
    if (Object.keys(values).length === 0) writeSection(name, section)
  }
}

/** The part, with the contenders and loads that the options choose. */
function limited(name: string, texts = [''], chosen: readonly string[] = allLoads, against = ''): Part {
  const part = parts[name]
  if (!part) throw new Error(`There is no part "${name}": see npm run bench -- --help`)
  const contenders = (against ? withCheckout(part.contenders, against) : part.contenders)
    .filter(each => texts.some(text => each.name.includes(text)))
    .map(each => ({ ...each, loads: each.loads.filter(load => chosen.includes(load)) }))
    .filter(each => each.loads.length > 0)
  if (contenders.length === 0) throw new Error(`No contender of ${name} has this name and load`)
  return { ...part, contenders }
}

await main().catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  process.exitCode = 1
})
