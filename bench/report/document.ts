import { peerAnimals } from '../comparisons/peers.ts'
import { postgresAnimals } from '../comparisons/postgres.ts'
import { fsyncMs } from '../comparisons/slow-disk.ts'
import type { Chart } from './charts.ts'
import { findings } from './findings.ts'
import type { Outcome } from './outcome.ts'
import { toMarkdown } from './table.ts'
import {
  careTable,
  footprintTable,
  growthTable,
  postgresTable,
  ratioTable,
  stepsTable,
  targetTable,
  workTables,
} from './tables.ts'

/** The whole outcome, for a reader. `chartsFolder` is relative to the document. */
export function documentOf(outcome: Outcome, charts: readonly Chart[], chartsFolder: string): string {
  const chart = (file: string) => {
    const found = charts.find(each => each.file === file)
    return found ? `![${found.label}](${chartsFolder}/${file})` : ''
  }
  const growth = growthTable(outcome)
  const postgres = postgresTable(outcome)
  const steps = stepsTable(outcome)
  const sections = [
    introduction(outcome),
    '## Wanted and seen',
    'Ratios are medians over the rounds, with the lowest and the highest in parentheses. A median decides.',
    toMarkdown(targetTable(outcome)),
    '## How many times as fast',
    "The petstore's requests a second, divided by the contender's in the same round. A ceiling does none of the work: there, 1 would be all that is possible. In the charts the ceilings are pale, and a thin line spans the rounds.",
    toMarkdown(ratioTable(outcome)),
    chart('benchmark-throughput.svg'),
    '## Work by work',
    ...workTables(outcome).flatMap(table => [`### ${table.title}`, toMarkdown(table)]),
    '## Start and memory',
    'From the start of the process, on a catalogue that is there, to the first answer; and the most memory that it held over all of the work above.',
    toMarkdown(footprintTable(outcome)),
    chart('benchmark-footprint.svg'),
    ...(postgres ? ['## On PostgreSQL', postgresWords, toMarkdown(postgres)] : []),
    ...(growth ? ['## Growth', growthWords, toMarkdown(growth), chart('benchmark-growth.svg')] : []),
    '## What care costs and gains',
    toMarkdown(careTable(outcome)),
    careWords,
    '## What stands in the way',
    ...(steps ? [stepsWords, toMarkdown(steps)] : []),
    findings,
    contenderSection(outcome),
    methodSection(outcome),
  ]
  return `${sections.filter(Boolean).join('\n\n')}\n`
}

/** A median of fewer says little. */
const roundsThatTell = 3

function introduction({ at, rounds, seconds, quick, machine, driver }: Outcome): string {
  const taken = `Taken on ${at.toISOString().slice(0, 10)}: ${rounds} ${rounds === 1 ? 'round' : 'rounds'} of ${seconds} s for each load, driven by ${driver}`
  const where = `${machine.processor}, ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.system}`
  return [
    '# Benchmarks',
    '`npm run bench` writes this page: the service against what one would use instead, doing the same work on one machine, in one run.',
    `${taken}, on ${where}. Server and load share these cores, so compare the ratios; the absolute figures are this machine's.`,
    quick || rounds < roundsThatTell
      ? '**This was a short run: the figures show little more than that everything works.**'
      : '',
  ]
    .filter(Boolean)
    .join('\n\n')
}

const growthWords =
  'Our own server with three catalogues at once, asked in turn. The cost is the CPU time of a request, of all threads of the server, against the smallest catalogue. The deep page lies a million animals deep, or near the end of a smaller catalogue; the animals that are fetched lie all over it.'

const postgresWords = `Both on one PostgreSQL server, which shares the machine with them and the load, each with a database of its own that holds ${postgresAnimals.toLocaleString('en')} animals. CPU time is that of the contender alone: what the database server needs comes on top of it, and on this machine limits both.`

const careWords = `An fsync of ${fsyncMs} ms is made by a small library (\`bench/comparisons/slow-fsync.c\`) that is compiled for the run and loaded before the C library: its \`fsync\` and \`fdatasync\` sleep, then do their work.`

const stepsWords =
  'Between fixed bytes and our list: the first servers are the shortest possible, and each does a little more of what every answer of ours needs of the runtime. All run at once and are asked in turn.'

function contenderSection({ peers }: Outcome): string {
  const rows = peers.map(({ contender }) => [contender.title, contender.about])
  return ['## Contenders', contenderWords, toMarkdown({ head: ['Contender', 'What it is'], rows })].join(
    '\n\n',
  )
}

const contenderWords =
  'Unless it says otherwise, each keeps animals in an SQLite file with a write-ahead log and `synchronous=FULL`, holds bodies and parameters against the same rules, wants the key, and pages by id with a `Link` header. None of them but ours writes a log, knows idempotency keys or keeps integers beyond 2^53 exact. Their programs are in `bench/contenders/`.'

function methodSection({ machine }: Outcome): string {
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`)
  return [
    '## How it is measured',
    method,
    `Versions: ${versions.join(', ')}.`,
    '```sh\nnpm run bench              # everything, about half an hour; writes this page\nnpm run bench -- --quick   # under two minutes; writes nothing\nnpm run bench -- --help    # one contender, one part\nnpm run bench:check        # fails when list, get or create has fallen below 0.8 of the recorded ratios\n```',
  ].join('\n\n')
}

const method = `- Each contender is one server process on 127.0.0.1, started anew for each round with its own copy of the same catalogue of ${peerAnimals.toLocaleString('en')} animals. Before anything is timed its answers are checked: animals and bytes of a list, filter, next pages, the deep page, an animal and an absent one, two creations with rising ids, 401 without the key, and 400 for bad bodies and parameters. Then it is warmed up.
- In a round the work goes from contender to contender; who comes first changes from round to round. A ratio is taken within a round.
- "List of 20" asks for the first page again and again, as most clients do. "Get one" asks for ten thousand animals all over the catalogue. The mix is 90% list, 8% get and 2% create: each creation makes the pages that were kept worthless.
- Where the load itself reaches its limit, two servers look alike: then CPU time a request tells more than requests a second.
- The load runs with \`nice -n 10\`: it would come from another machine. CPU time is that of the server with all its threads and processes, from \`/proc\`; memory is the sum of their peaks.
- The record for \`npm run bench:check\` is \`bench/recorded.json\`.`
