import { createCommitter, gather } from '../../src/store/sqlite/committer.ts'
import type { WriterThreadMessage } from '../../src/store/sqlite/writer-thread.ts'
import type { Write } from '../../src/store/sqlite/writes.ts'

/** Ends the thread that is handed an animal of this name, before anything of its batch is written. */
export const diesBefore = 'Die'
/** Ends it once the batch is on the disk, and before anybody was told. */
export const diesAfter = 'Die after the commit'

/** The writer's thread as it is, but for the animals that kill it. */
if (!Bun.isMainThread) {
  let committer: ReturnType<typeof createCommitter> | undefined
  const take = gather(batch => {
    if (namesIn(batch).includes(diesBefore)) process.exit(1)
    const written = committer?.commit(batch)
    if (namesIn(batch).includes(diesAfter)) process.exit(1)
    postMessage(written)
  })
  addEventListener('message', ({ data }: MessageEvent<WriterThreadMessage>) => {
    if (data === 'close') {
      setImmediate(() => {
        committer?.close()
        postMessage('closed')
      })
    } else if ('file' in data) committer = createCommitter(data.file)
    else take(data)
  })
}

function namesIn(batch: readonly Write[]): readonly unknown[] {
  return batch.map(([, first]) =>
    typeof first === 'object' && first !== null && 'name' in first ? first.name : first,
  )
}
