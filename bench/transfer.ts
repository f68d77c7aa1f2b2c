import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { animalsAfter, importAnimals, petstoreProgram } from './catalogue.ts'
import { type Bench, withCluster } from './measure.ts'
import { median, spreadOf, type TransferComparison, type TransferFigures } from './record.ts'
import { usageOf } from './start.ts'

const animals = 1_000_000
const pollMs = 20

/** `petstore import` and `petstore export` against PostgreSQL's COPY, which moves the same rows between table and file. */
export function compareTransfers(bench: Bench): Promise<TransferComparison | undefined> {
  return withCluster(bench, async cluster => {
    await importAnimals(bench.session, cluster.url(), 1)
    await using sql = new SQL(cluster.url(), { max: 1 })
    const folder = bench.session.folder('transfer')
    const [lines, exported, copied] = [join(folder, 'lines'), join(folder, 'exported'), join(folder, 'copied')]
    writeFileSync(lines, linesOfAnimals())
    const samples: Record<keyof TransferComparison, Sample[]> = { import: [], export: [] }
    const run = (...args: string[]) => runPetstore(bench, [...args, '--database-url', cluster.url()])
    const add = (what: keyof TransferComparison, ours: Timed, copySeconds: number) => {
      samples[what].push({ ...ours, copySeconds })
      bench.log(`${what}: petstore ${ours.seconds.toFixed(2)} s, COPY ${copySeconds.toFixed(2)} s`)
    }
    for (let round = 1; round <= bench.effort.rounds; round++) {
      bench.log(`round ${round} of ${bench.effort.rounds}`)
      const emptyTable = () => sql.unsafe('TRUNCATE pets; CHECKPOINT')
      await emptyTable()
      const imported = await run('import', '--keep-ids', lines)
      add(
        'export',
        await run('export', exported),
        await secondsOf(() => Bun.write(copied, new Response(sql`COPY pets TO STDOUT`.readable()))),
      )
      const isSame = Buffer.from(await Bun.file(lines).bytes()).equals(await Bun.file(exported).bytes())
      if (!isSame) throw new Error('the exported animals are not the imported ones')
      rmSync(exported)
      await emptyTable()
      add(
        'import',
        imported,
        await secondsOf(() => Bun.file(copied).stream().pipeTo(sql`COPY pets FROM STDIN`.writable())),
      )
    }
    return { export: figuresOf(samples.export), import: figuresOf(samples.import) }
  })
}

function linesOfAnimals(): string {
  return animalsAfter(0, animals)
    .map(animal => `${JSON.stringify(animal)}\n`)
    .join('')
}

interface Timed {
  readonly seconds: number
  readonly peakMb: number
}

interface Sample extends Timed {
  readonly copySeconds: number
}

async function runPetstore({ session }: Bench, args: readonly string[]): Promise<Timed> {
  const startedMs = performance.now()
  const program = session.spawn([petstoreProgram, ...args], { stdout: 'ignore', stderr: 'pipe' })
  const messages = new Response(program.stderr as ReadableStream).text()
  // Not resourceUsage(): it counts our own memory at the start of the program, too.
  let peakMb = 0
  const timer = setInterval(() => {
    peakMb = Math.max(peakMb, usageOf(program.pid).peakMb || 0)
  }, pollMs)
  const exitCode = await program.exited
  clearInterval(timer)
  if (exitCode !== 0) throw new Error(`petstore ${args[0]} failed: ${await messages}`)
  return { seconds: (performance.now() - startedMs) / 1_000, peakMb }
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return (performance.now() - startedMs) / 1_000
}

function figuresOf(samples: readonly Sample[]): TransferFigures {
  const ratio = spreadOf(samples.map(({ seconds, copySeconds }) => seconds / copySeconds))
  return {
    seconds: median(samples.map(each => each.seconds)),
    copySeconds: median(samples.map(each => each.copySeconds)),
    peakMb: median(samples.map(each => each.peakMb)),
    ...(ratio && { ratio }),
  }
}
