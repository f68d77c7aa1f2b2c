import { accessSync, constants, statSync } from 'node:fs'
import type { Command } from 'commander'
import { OutcomeUnknown, SetupError, StoreUnavailable } from '../errors.ts'
import type { ImportedPet, ImportIds, Stores } from '../store.ts'
import { addSetting, command, fileName } from './command.ts'
import { animals } from './counted.ts'
import { endInterrupted, interruption, unlessInterrupted } from './interruption.ts'
import type { Io } from './io.ts'
import { BadLine } from './lines.ts'
import { readPetLines } from './pet-lines.ts'
import { announce, type Progress, startProgress } from './progress.ts'
import { type Flags, settings } from './settings.ts'
import { visible } from './visible.ts'
import { withStores } from './with-stores.ts'

const teaching = `
Each line is one animal, as export writes it: {"id":1,"name":"Rex","categoryId":7,"status":"sold"}
All lines are checked by the rules of the API, up to 64 KiB each; at the first bad one the import ends, and nothing has changed.
Without --keep-ids an id is checked and left out: animals get new ids, higher than all before, in the order of the lines.
With it every line needs an id, rising from line to line, and the store must not hold an animal.
The server may run. After all lines are read the store takes in the animals, SQLite a million in 2 seconds: meanwhile a POST
waits, and gets 503 after 3 to 5 seconds.

Examples:
  petstore import animals.ndjson                  add animals to the store, with new ids
  petstore import --keep-ids animals.ndjson       fill an empty store, with the ids of the lines
  gunzip -c animals.ndjson.gz | petstore import - from another program`

export function addImportCommand(program: Command, io: Io): void {
  const description = 'add animals from lines of JSON (NDJSON): all of them, or none'
  const added = command(program, 'import', description)
    .argument('<file>', 'what to read; - for stdin', fileName)
    .option(
      '--keep-ids',
      'keep the ids of the lines, in a store that holds no animal (default: give new ones)',
    )
    .addHelpText('after', teaching)
  addSetting(added, settings.databaseUrl).action(async (file: string, options: { keepIds?: true }) =>
    importPets(file, options, io),
  )
}

async function importPets(file: string, options: { readonly keepIds?: true }, io: Io): Promise<void> {
  const source = openSource(file)
  const ids = options.keepIds ? 'keep' : 'new'
  let interrupted: AbortSignal | undefined
  try {
    await withStores(options as Flags, io, { create: true }, async stores => {
      // Not before: a store that cannot be reached is not waited for against somebody's will.
      interrupted = interruption()
      await importFrom(source, stores, ids, interrupted, io)
    })
  } catch (error) {
    const unknown = error instanceof OutcomeUnknown
    if (interrupted?.aborted) endInterrupted(unknown ? inDoubt(source.label) : 'nothing is imported', io)
    if (unknown)
      throw new SetupError(`Cannot tell how the import ended: ${inDoubt(source.label)}`, { cause: error })
    throw importErrorOf(error, source.label)
  }
}

const inDoubt = (label: string) =>
  `the store did not say whether it has taken in ${label}: all of its animals are there now, or none; look before you import again`

async function importFrom(
  source: Source,
  { transfer, location }: Stores,
  ids: ImportIds,
  interrupted: AbortSignal,
  io: Io,
): Promise<void> {
  const progress = (source.bytes > 0 ? startProgress : announce)(`Reading ${source.label}`, io)
  try {
    const pets = readPetLines(chunksOf(source, progress, interrupted), ids)
    const loading = transfer.load(announced(pets, location, progress, io), ids, interrupted)
    const count = await unlessGivenUp(loading, interrupted)
    if (count === 0n) return io.err(`${source.label} holds no animals: nothing is imported\n`)
    const which = ids === 'keep' ? 'their own ids' : 'new ids'
    io.err(`Imported ${animals(count)} into ${location}, with ${which}\n`)
  } finally {
    progress.stop()
  }
}

/** Once the store takes the animals in, only it knows how that ends: after an interruption it has a moment to say so. */
async function unlessGivenUp<T>(loading: Promise<T>, interrupted: AbortSignal): Promise<T> {
  try {
    return await unlessInterrupted(loading, interrupted)
  } catch (error) {
    if (!interrupted.aborted) throw error
    const late = Bun.sleep(lastWordMs).then(() => Promise.reject(new OutcomeUnknown('interrupted')))
    return await Promise.race([loading, late])
  }
}

const lastWordMs = 5_000

/** Says that everything is read and found good, before the store takes it in: that takes its time, too. */
async function* announced(
  batches: AsyncIterable<readonly ImportedPet[]>,
  place: string,
  progress: Progress,
  io: Io,
): AsyncGenerator<readonly ImportedPet[]> {
  let count = 0
  for await (const pets of batches) {
    count += pets.length
    yield pets
  }
  progress.stop()
  if (count > 0) io.err(`All lines are good; adding ${animals(count)} to ${place}\n`)
}

interface Source {
  readonly label: string
  /** 0 where that is not known. */
  readonly bytes: number
  /** Not Node's streams: a thread that waits in read() for a pipe would keep an interrupted process. */
  stream(): ReadableStream<Uint8Array>
}

/** What is wrong with a file is told before a store is made for it. */
function openSource(file: string): Source {
  if (file === '-') return { label: 'stdin', bytes: 0, stream: () => Bun.stdin.stream() }
  try {
    const stat = statSync(file)
    if (!stat.isFile() && !stat.isFIFO()) throw Object.assign(new Error('no file'), { code: 'EISDIR' })
    accessSync(file, constants.R_OK)
    return { label: file, bytes: stat.isFile() ? stat.size : 0, stream: () => Bun.file(file).stream() }
  } catch (error) {
    throw importErrorOf(error, file)
  }
}

async function* chunksOf(
  { stream, bytes }: Source,
  progress: Progress,
  interrupted: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = stream().getReader()
  try {
    for (let read = 0; ; ) {
      const { done, value } = await unlessInterrupted(reader.read(), interrupted)
      if (done) return
      read += value.length
      progress.update(Math.min(1, read / Math.max(1, bytes)))
      yield value
    }
  } finally {
    // Not waited for: whoever writes may have stalled.
    void reader.cancel().catch(() => {})
  }
}

function importErrorOf(error: unknown, label: string): unknown {
  if (error instanceof BadLine) {
    const why = visible(`line ${error.line}: ${error.message}`)
    return new SetupError(`Cannot import ${label}: ${why}; nothing is imported`, { cause: error })
  }
  if (error instanceof StoreUnavailable) {
    return new SetupError(
      `Cannot import ${label}: the store does not answer (${error.message}); nothing is imported`,
    )
  }
  const code = (error as { code?: string } | undefined)?.code ?? ''
  const why = mends.find(([codes]) => codes.test(code))?.[1]
  return why ? new SetupError(`Cannot import ${label}: ${why} (${code})`, { cause: error }) : error
}

const mends: readonly (readonly [RegExp, string])[] = [
  [/^(ENOENT|ENOTDIR)$/, 'there is no such file'],
  [/^EISDIR$/, 'it is neither a file nor a pipe; name one, or - for stdin'],
  [/^(EACCES|EPERM)$/, 'no right to read it'],
  [/^EIO$/, 'it cannot be read'],
]
