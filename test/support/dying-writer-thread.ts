import { parentPort, workerData } from 'node:worker_threads'
import { createCommitter, type WriterThreadData } from '../../src/store/sqlite/writer-thread.ts'
import type { Write } from '../../src/store/sqlite/writes.ts'

/** Ends the thread that is handed an animal of this name, before anything of its batch is written. */
export const diesBefore = 'Die'
/** Ends it once the batch is on the disk, and before anybody was told. */
export const diesAfter = 'Die after the commit'

/** The writer's thread as it is, but for the animals that kill it. */
if (parentPort) {
  const port = parentPort
  const committer = createCommitter((workerData as WriterThreadData).file)
  // The thread that it takes after listens already, as soon as it is imported.
  port.removeAllListeners('message')
  port.on('message', (batch: readonly Write[] | 'close') => {
    if (batch === 'close') {
      committer.close()
      return port.postMessage('closed')
    }
    if (namesIn(batch).includes(diesBefore)) process.exit(1)
    const written = committer.commit(batch)
    if (namesIn(batch).includes(diesAfter)) process.exit(1)
    port.postMessage(written)
  })
}

function namesIn(batch: readonly Write[]): readonly string[] {
  return batch.flatMap(({ args: [first] }) =>
    typeof first === 'object' && first !== null && 'name' in first ? [first.name] : [],
  )
}
