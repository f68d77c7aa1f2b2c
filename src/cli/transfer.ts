// The commands export and import.

import { open } from 'node:fs/promises'
import { setImmediate as nextTick } from 'node:timers/promises'
import { OutcomeUnknown, SetupError } from '../errors.ts'
import { petToJson } from '../json.ts'
import { writeMsMax } from '../store/commit-queue.ts'
import type { ImportIds, Stores } from '../store-contract.ts'
import { explain } from './advice.ts'
import { argument, command, switchOption } from './command.ts'
import { runInterruptible, unlessAborted } from './interrupt.ts'
import { lineBytesMax, readPetLines } from './ndjson.ts'
import { writeNewFile } from './new-file.ts'
import { type Io, isTerminal } from './output.ts'
import { storeOptions, withStores } from './stores.ts'
import { animals, type Progress, startProgress } from './terminal.ts'

export const exportCommand = command({
  name: 'export',
  summary: 'Write every animal as a line of JSON (NDJSON), while the server runs',
  options: {
    file: { ...argument('file', 'a new file, created when the export is complete'), otherwise: 'stdout' },
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

/** Shows the progress if there is an `io`. Returns how many animals were written. */
async function exportTo(write: Io['out'], { transfer, location }: Stores, signal: AbortSignal, io: Io | undefined) {
  using progress = io && startProgress(`Exporting the animals of ${location}`, io)
  const copy = async () => {
    const total = await transfer.estimate()
    let count = 0
    for await (const pets of transfer.read()) {
      signal.throwIfAborted()
      await write(pets.map(pet => `${petToJson(pet)}\n`).join(''))
      count += pets.length
      progress?.update(Math.min(0.99, count / total))
      // Signals arrive between event-loop ticks.
      await new Promise(setImmediate)
    }
    return count
  }
  // A pipe or a database may have stalled.
  return await unlessAborted(copy(), signal)
}

export const importCommand = command({
  name: 'import',
  summary: 'Add animals from lines of JSON (NDJSON): all of them, or none',
  options: {
    file: argument('file', 'a file with an animal on each line, or - for stdin'),
    keepIds: switchOption(
      'keep-ids',
      'Keep the ids of the lines instead of assigning new ones; the store must be empty',
    ),
    dryRun: switchOption('dry-run', 'Only check the lines; no store is opened'),
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
    const label = file === '-' ? 'stdin' : file
    const ids = keepIds ? 'keep' : 'new'
    const ifUnknown = `either all animals of ${label} were imported or none; check before you import again`
    try {
      const source = await openSource(file, label)
      await runInterruptible(io, { ifAborted: 'nothing was imported', ifUnknown }, async catchSignals => {
        if (dryRun) return checkLines(source, ids, catchSignals(), io)
        await withStores({ ...store, create: true }, io, stores => importFrom(source, stores, ids, catchSignals(), io))
      })
    } catch (error) {
      throw explain(`Cannot import ${label}`, error, [
        [/^(ENOENT|ENOTDIR)$/, 'the file does not exist'],
        [/^(EACCES|EPERM|EIO)$/, 'it cannot be read'],
      ])
    }
  },
})

type Source = Awaited<ReturnType<typeof openSource>>

/** Checks the file before a store is created for it. `bytes` is 0 if the size is not known. */
async function openSource(file: string, label: string) {
  // Not a stream of Node: its thread, blocked in read() on a pipe, would keep an interrupted process alive.
  const source = file === '-' ? Bun.stdin : Bun.file(file)
  const found = await source.stat()
  if (found.isDirectory()) throw new SetupError(`Cannot import ${label}: it is a folder; name a file, or - for stdin`)
  return { label, bytes: found.size, stream: () => source.stream() }
}

async function checkLines(source: Source, ids: ImportIds, signal: AbortSignal, io: Io): Promise<void> {
  let count = 0
  for await (const pets of readPets(source, ids, signal, io)) count += pets.length
  io.err(`All lines are valid: ${source.label} has ${animals(count)}; nothing was imported\n`)
}

/** After an interruption, the store has this long to report whether it has committed. */
const commitGraceMs = 5_000

async function importFrom(source: Source, { transfer, location }: Stores, ids: ImportIds, signal: AbortSignal, io: Io) {
  const read = async function* () {
    yield* readPets(source, ids, signal, io)
    io.err(`All lines are valid; adding the animals to ${location}\n`)
  }
  const loading = transfer.load(read(), ids, signal)
  const count = await unlessAborted(loading, signal, commitGraceMs, new OutcomeUnknown('interrupted'))
  if (count === 0n) return void io.err(`${source.label} has no animals: nothing was imported\n`)
  io.err(`Imported ${animals(count)} into ${location}, with ${ids === 'keep' ? 'their own' : 'new'} ids\n`)
}

async function* readPets(source: Source, ids: ImportIds, signal: AbortSignal, io: Io) {
  using progress = startProgress(`Reading ${source.label}`, io, source.bytes > 0)
  yield* readPetLines(readChunks(source, progress, signal), ids, source.label)
}

async function* readChunks({ stream, bytes }: Source, progress: Progress, signal: AbortSignal) {
  const reader = stream().getReader()
  try {
    for (let read = 0; ; ) {
      const { done, value } = await unlessAborted(reader.read(), signal)
      if (done) return
      read += value.length
      progress.update(Math.min(1, read / bytes))
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
