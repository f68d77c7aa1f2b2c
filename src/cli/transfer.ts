// The commands export and import.

import { access, constants, open, stat } from 'node:fs/promises'
import { setImmediate as nextTick } from 'node:timers/promises'
import { OutcomeUnknown, SetupError } from '../errors.ts'
import { petToJson } from '../json.ts'
import { writeMsMax } from '../store/commit-queue.ts'
import type { ImportIds, Stores } from '../store-contract.ts'
import { explain } from './advice.ts'
import { argument, command, switchOption } from './arguments.ts'
import { runInterruptible, unlessAborted } from './interrupt.ts'
import { InvalidLines, lineBytesMax, readPetLines } from './ndjson.ts'
import { writeNewFile } from './new-file.ts'
import { animals, type Io, isTerminal, type Progress, startProgress, visible } from './output.ts'
import { storeOptions, withStores } from './settings.ts'

export const exportCommand = command({
  name: 'export',
  summary: 'Write every animal as a line of JSON (NDJSON), while the server runs',
  options: {
    file: {
      ...argument('<file>', 'a new file, created when the export is complete'),
      default: 'stdout',
      optional: true,
    },
    ...storeOptions,
  },
  details: 'The animals are those of one moment, in ascending order of id. API keys are not exported.',
  examples: ['petstore export animals.ndjson', 'petstore export | gzip > animals.ndjson.gz'],
  async run({ file = '-', ...store }, io) {
    const ifAborted = file === '-' ? 'the output is incomplete' : `${file} was not created`
    await runInterruptible(io, { ifAborted }, catchSignals =>
      withStores({ ...store, create: false }, io, stores =>
        file === '-' ? exportToStdout(stores, catchSignals(), io) : exportToFile(file, stores, catchSignals(), io),
      ),
    )
  },
})

async function exportToStdout(stores: Stores, signal: AbortSignal, io: Io): Promise<void> {
  const count = await exportTo(io.out, stores, signal, isTerminal(1) ? undefined : io)
  io.err(`Exported ${animals(count)}\n`)
}

async function exportToFile(file: string, stores: Stores, signal: AbortSignal, io: Io): Promise<void> {
  const { result, bytes } = await writeNewFile(file, `Cannot export to ${file}`, async path => {
    await using handle = await open(path, 'w')
    return await exportTo(text => handle.appendFile(text), stores, signal, io)
  })
  io.err(`Exported ${animals(result)} to ${file} (${bytes.toLocaleString('en')} bytes)\n`)
}

/** After an interruption, a batch that is being read or written has this long to end. */
const exportGraceMs = 500

/** Shows the progress if there is an `io`. Returns how many animals were written. */
async function exportTo(write: Io['out'], { transfer, location }: Stores, signal: AbortSignal, io: Io | undefined) {
  let progress: Progress | undefined
  const copy = async () => {
    const total = await transfer.estimate()
    if (io) progress = startProgress(`Exporting the animals of ${location}`, io)
    let count = 0
    for await (const pets of transfer.read()) {
      signal.throwIfAborted()
      await write(pets.map(pet => `${petToJson(pet)}\n`).join(''))
      count += pets.length
      progress?.update(Math.min(0.99, count / Math.max(1, total)))
      // Signals arrive between event-loop ticks.
      await new Promise(setImmediate)
    }
    return count
  }
  try {
    return await unlessAborted(copy(), signal, exportGraceMs)
  } finally {
    progress?.stop()
  }
}

export const importCommand = command({
  name: 'import',
  summary: 'Add animals from lines of JSON (NDJSON): all of them, or none',
  options: {
    file: argument('<file>', 'a file with an animal on each line, or - for stdin'),
    keepIds: switchOption(
      '--keep-ids',
      'Keep the ids of the lines instead of assigning new ones; the store must be empty',
    ),
    dryRun: switchOption('--dry-run', 'Only check the lines; no store is opened'),
    ...storeOptions,
  },
  details: `A line has up to ${lineBytesMax / 1024} KiB: {"name":"Rex","categoryId":7,"status":"sold"}
Its values are checked as in a POST. Unknown fields are refused, because their data would be lost.
The server may run. While the store adds the animals (SQLite: a million in 2 seconds), a POST waits,
and is 503 after ${writeMsMax / 1_000} seconds.`,
  examples: [
    'petstore import --keep-ids animals.ndjson',
    'gunzip -c animals.ndjson.gz | petstore import -',
    "jq -c '.[]' pets.json | petstore import -",
  ],
  async run({ file, keepIds, dryRun, ...store }, io) {
    const source = await openSource(file)
    const ids = keepIds ? 'keep' : 'new'
    const ifUnknown = `either all animals of ${source.label} were imported or none; check before you import again`
    try {
      await runInterruptible(io, { ifAborted: 'nothing was imported', ifUnknown }, async catchSignals => {
        if (dryRun) return checkLines(source, ids, catchSignals(), io)
        await withStores({ ...store, create: true }, io, stores => importFrom(source, stores, ids, catchSignals(), io))
      })
    } catch (error) {
      throw importProblem(error, source.label)
    }
  },
})

async function checkLines(source: Source, ids: ImportIds, signal: AbortSignal, io: Io): Promise<void> {
  let count = 0
  for await (const pets of readPets(source, ids, signal, io)) count += pets.length
  io.err(`All lines are valid: ${source.label} has ${animals(count)}; nothing was imported\n`)
}

/** After an interruption, the store has this long to report whether it has committed. */
const commitGraceMs = 5_000

async function importFrom(source: Source, { transfer, location }: Stores, ids: ImportIds, signal: AbortSignal, io: Io) {
  const read = async function* () {
    let count = 0
    for await (const pets of readPets(source, ids, signal, io)) {
      count += pets.length
      yield pets
    }
    if (count > 0) io.err(`All lines are valid; adding ${animals(count)} to ${location}\n`)
  }
  const loading = transfer.load(read(), ids, signal)
  const count = await unlessAborted(loading, signal, commitGraceMs, new OutcomeUnknown('interrupted'))
  if (count === 0n) return void io.err(`${source.label} has no animals: nothing was imported\n`)
  io.err(`Imported ${animals(count)} into ${location}, with ${ids === 'keep' ? 'their own' : 'new'} ids\n`)
}

async function* readPets(source: Source, ids: ImportIds, signal: AbortSignal, io: Io) {
  using progress = startProgress(`Reading ${source.label}`, io, source.bytes > 0)
  yield* readPetLines(readChunks(source, progress, signal), ids)
}

type Source = Awaited<ReturnType<typeof openSource>>

const notASource = 'it is not a file or a pipe; name one, or - for stdin'

/** Checks the file before a store is created for it. `bytes` is 0 if the size is not known. */
async function openSource(file: string) {
  // Not a stream of Node: its thread, blocked in read() on a pipe, would keep an interrupted process alive.
  if (file === '-') return { label: 'stdin', bytes: 0, stream: () => Bun.stdin.stream() }
  try {
    const found = await stat(file)
    if (!found.isFile() && !found.isFIFO()) throw new SetupError(`Cannot import ${file}: ${notASource}`)
    await access(file, constants.R_OK)
    return { label: file, bytes: found.isFile() ? found.size : 0, stream: () => Bun.file(file).stream() }
  } catch (error) {
    throw importProblem(error, file)
  }
}

async function* readChunks({ stream, bytes }: Source, progress: Progress, signal: AbortSignal) {
  const reader = stream().getReader()
  try {
    for (let read = 0; ; ) {
      const { done, value } = await unlessAborted(reader.read(), signal)
      if (done) return
      read += value.length
      progress.update(Math.min(1, read / Math.max(1, bytes)))
      yield value
      // Signals arrive between event-loop ticks, and a file has its chunks ready.
      await nextTick()
      signal.throwIfAborted()
    }
  } finally {
    // Not awaited: the writer of a pipe may have stalled.
    void reader.cancel().catch(() => {})
  }
}

/** A SetupError that says what to do; an error with another cause unchanged. */
function importProblem(error: unknown, label: string): unknown {
  const what = `Cannot import ${label}`
  if (error instanceof InvalidLines) return new SetupError(`${what}: ${invalidLines(error)}`)
  return explain(what, error, [
    [/^(ENOENT|ENOTDIR)$/, 'the file does not exist'],
    [/^EISDIR$/, notASource],
    [/^(EACCES|EPERM)$/, 'no permission to read it'],
    [/^EIO$/, 'it cannot be read'],
  ])
}

/** One problem stays on the line; several get their own. */
function invalidLines({ problems, count }: InvalidLines): string {
  const [first = '', ...others] = problems.map(visible)
  if (others.length === 0) return `${first}; nothing was imported`
  const more = count - problems.length
  const rest = more > 0 ? [`and ${more.toLocaleString('en')} more`] : []
  const lines = [first, ...others, ...rest].map(line => `\n  ${line}`).join('')
  return `${count.toLocaleString('en')} lines are invalid; nothing was imported${lines}`
}
