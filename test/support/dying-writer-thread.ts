import { parentPort, workerData } from 'node:worker_threads'
import { createCommitter, gather } from '../../src/store/sqlite/committer.ts'
import type { WriterThreadData } from '../../src/store/sqlite/writer-thread.ts'
import type { Write } from '../../src/store/sqlite/writes.ts'

/** Ends the thread that is handed an animal of this name, before anything of its batch is written. */
export const diesBefore = 'Die'
/** Ends it once the batch is on the disk, and before anybody was told. */
export const diesAfter = 'Die after the commit'

/** The writer's thread as it is, but for the animals that kill it. */
if (parentPort) {
  const port = parentPort
  const committer = createCommitter((workerData as WriterThreadData).file)
  const take = gather(batch => {
    if (namesIn(batch).includes(diesBefore)) process.exit(1)
    const written = committer.commit(batch)
    if (namesIn(batch).includes(diesAfter)) process.exit(1)
    port.postMessage(written)
  })
  port.on('message', (message: readonly Write[] | 'close') => {
    if (message !== 'close') return take(message)
    setImmediate(() => {
      committer.close()
      port.postMessage('closed')
    })
  })
}

function namesIn(batch: readonly Write[]): readonly unknown[] {
  return batch.map(([, first]) =>
    typeof first === 'object' && first !== null && 'name' in first ? first.name : first,
  )
}
