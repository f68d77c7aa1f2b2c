import { SetupError } from '../errors.ts'
import { backUp, backUpProblem } from '../store/open.ts'
import { exitCode, type Io } from './io.ts'
import { createNewFile, newFileMend } from './new-file.ts'
import { startProgress } from './progress.ts'
import { type Flags, readStoreSettings } from './settings.ts'

export async function backUpStore(file: string, flags: Flags, io: Io): Promise<void> {
  const databaseUrl = readStoreSettings(flags, io.env)
  const problem = backUpProblem(databaseUrl)
  if (problem) throw new SetupError(problem)
  const interruption = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort())
  const progress = startProgress('Copying the store', io)
  try {
    using target = createNewFile(file)
    const pets = await backUp(databaseUrl, target.path, progress.update, interruption.signal)
    const bytes = target.publish()
    progress.stop()
    const size = `${pets.toLocaleString('en')} animals in ${bytes.toLocaleString('en')} bytes`
    io.err(`${file} holds ${size}; it was read through and is sound\n`)
  } catch (error) {
    if (!interruption.signal.aborted) throw backupErrorOf(error, file)
    progress.stop()
    io.err(`petstore: Interrupted: there is no ${file}\n`)
    // The thread that copies cannot be stopped in the middle of a statement; the process can.
    process.exit(exitCode.failure)
  } finally {
    progress.stop()
  }
}

function backupErrorOf(error: unknown, file: string): unknown {
  const { code = '' } = error as { code?: string }
  const why = newFileMend(code)
  return why ? new SetupError(`Cannot back up to ${file}: ${why} (${code})`, { cause: error }) : error
}
