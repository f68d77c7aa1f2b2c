import { open } from 'node:fs/promises'
import type { Command } from 'commander'
import { SetupError } from '../errors.ts'
import type { Transfer } from '../store.ts'
import { addSetting, command, fileName } from './command.ts'
import { animals } from './counted.ts'
import { endInterrupted, interruptible, interruption, unlessInterrupted } from './interruption.ts'
import type { Io } from './io.ts'
import { createNewFile, newFileMend } from './new-file.ts'
import { petLines } from './pet-lines.ts'
import { announce, startProgress, unseen } from './progress.ts'
import { type Flags, settings } from './settings.ts'
import { visible } from './visible.ts'
import { withStores } from './with-stores.ts'

const teaching = `
Each line is one animal, as the API writes it: {"id":1,"name":"Rex","categoryId":7,"status":"sold"}
They are the animals of one moment, in ascending order of id; the server goes on meanwhile. API keys are not among them.
FILE appears when it is complete, readable by its owner only.

Examples:
  petstore export animals.ndjson                  to a file that is not there yet
  petstore export | gzip > animals.ndjson.gz      to another program
  petstore export | grep -c '"status":"sold"'     count those that are sold
  petstore export --database-url sqlite:a.db | petstore import - --keep-ids --database-url sqlite:b.db`

export function addExportCommand(program: Command, io: Io): void {
  const description = 'write every animal of a running store as a line of JSON (NDJSON)'
  const added = command(program, 'export', description)
    .argument(
      '[file]',
      'where to; a file that is there already is not overwritten (default: stdout)',
      fileName,
    )
    .addHelpText('after', teaching)
  addSetting(added, settings.databaseUrl).action(async (file: string | undefined, flags: Flags) =>
    exportPets(file, flags, io),
  )
}

async function exportPets(file: string | undefined, flags: Flags, io: Io): Promise<void> {
  const toStdout = file === undefined || file === '-'
  let interrupted: AbortSignal | undefined
  try {
    await withStores(flags, io, { create: false }, async ({ transfer, location }) => {
      interrupted = interruption()
      const work = { transfer, io, interrupted, label: `Exporting the animals of ${location}` }
      await (toStdout ? exportToStdout(work) : exportToFile(file, work))
    })
  } catch (error) {
    if (interrupted?.aborted) {
      endInterrupted(toStdout ? 'not every animal was written' : `there is no ${file}`, io)
    }
    throw error
  }
}

interface Work {
  readonly transfer: Transfer
  readonly io: Io
  readonly interrupted: AbortSignal
  readonly label: string
}

async function exportToStdout(work: Work): Promise<void> {
  const { io } = work
  const onTerminal = process.stdout.isTTY === true
  // On a terminal a name must not steer it; the JSON stays the same.
  const shown = onTerminal ? visible : (text: string) => text
  const count = await exportTo(text => io.out(shown(text)), work, onTerminal)
  io.err(`Exported ${animals(count)}\n`)
}

async function exportToFile(file: string, work: Work): Promise<void> {
  const { io } = work
  try {
    using target = createNewFile(file)
    await using handle = await open(target.path, 'w')
    const count = await exportTo(text => handle.appendFile(text), work, false)
    const bytes = target.publish()
    io.err(`${file} holds ${animals(count)} in ${bytes.toLocaleString('en')} bytes\n`)
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    if (code === undefined) throw error
    const why = newFileMend(code) ?? message
    throw new SetupError(`Cannot export to ${file}: ${why} (${code})`, { cause: error })
  }
}

async function exportTo(
  write: (text: string) => Promise<void>,
  { transfer, io, interrupted, label }: Work,
  quiet: boolean,
): Promise<number> {
  const total = await unlessInterrupted(transfer.estimate(), interrupted)
  const progress = quiet ? unseen : (total === undefined ? announce : startProgress)(label, io)
  let count = 0
  try {
    for await (const pets of interruptible(transfer.read(), interrupted)) {
      await unlessInterrupted(write(petLines(pets)), interrupted)
      count += pets.length
      progress.update(Math.min(0.99, count / Math.max(1, total ?? 1)))
      // Signals are heard only between two turns of the event loop.
      await new Promise(setImmediate)
    }
    return count
  } finally {
    progress.stop()
  }
}
