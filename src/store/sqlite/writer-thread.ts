import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { createCommitter, gather } from './committer.ts'
import type { Write } from './writes.ts'

/** What the writer's thread is started with. */
export interface WriterThreadData {
  readonly file: string
  /** The file that the store was opened on. */
  readonly identity: string | undefined
}

if (!isMainThread && parentPort) {
  const port = parentPort
  const { file, identity } = workerData as WriterThreadData
  const committer = createCommitter(file, identity)
  const take = gather(batch => port.postMessage(committer.commit(batch)))
  port.on('message', (message: readonly Write[] | 'close') => {
    if (message !== 'close') return take(message)
    // After what was gathered before it.
    setImmediate(() => {
      committer.close()
      port.postMessage('closed')
    })
  })
}
