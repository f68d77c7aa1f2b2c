import { SetupError } from '../fault.ts'
import { backUp, backUpProblem } from '../store/open.ts'
import { exitCode, type Io } from './io.ts'
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
    const { pets, bytes } = await backUp(databaseUrl, file, progress.update, interruption.signal)
    progress.stop()
    const size = `${pets.toLocaleString('en')} animals in ${bytes.toLocaleString('en')} bytes`
    io.err(`${file} holds ${size}; it was read through and is sound\n`)
  } catch (error) {
    if (!interruption.signal.aborted) throw error
    progress.stop()
    io.err(`petstore: Interrupted: there is no ${file}\n`)
    // The thread that copies cannot be stopped in the middle of a statement; the process can.
    process.exit(exitCode.failure)
  } finally {
    progress.stop()
  }
}
