import { SetupError } from '../errors.ts'
import { backUp, backUpProblem } from '../store/open.ts'
import { command } from './arguments.ts'
import { createNewFile, newFileProblem } from './new-file.ts'
import { animals, type Io, startProgress } from './output.ts'
import { settings } from './settings.ts'
import { interruptible } from './store-command.ts'

export const backupCommand = command({
  name: 'backup',
  summary: 'Copy an SQLite store into a new file, while the server runs, and check the copy',
  arguments: [{ name: 'file', help: 'a new file; an existing one is not overwritten' }],
  options: { databaseUrl: settings.databaseUrl },
  examples: ['petstore backup pets-2030-01-31.db'],
  async run({ databaseUrl }, [file = ''], io) {
    const problem = backUpProblem(databaseUrl)
    if (problem) throw new SetupError(problem)
    const outcome = () => `${file} was not created`
    await interruptible(io, outcome, listen => backUpTo(file, databaseUrl, listen(), io))
  },
})

async function backUpTo(file: string, databaseUrl: string, signal: AbortSignal, io: Io): Promise<void> {
  const progress = startProgress('Copying the store', io)
  try {
    using target = createNewFile(file)
    const count = await backUp(databaseUrl, target.path, progress.update, signal)
    const bytes = target.publish()
    progress.stop()
    io.err(`Copied ${animals(count)} to ${file} (${bytes.toLocaleString('en')} bytes) and checked the copy\n`)
  } catch (error) {
    throw newFileProblem(`Cannot back up to ${file}`, error)
  } finally {
    progress.stop()
  }
}
