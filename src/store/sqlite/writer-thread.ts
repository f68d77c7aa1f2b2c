import { createCommitter, gather } from './committer.ts'
import type { Write, Written } from './writes.ts'

/** What the writer's thread is told: first which file it writes, then what, and at the end that there is no more. */
export type WriterThreadMessage = WriterThreadData | readonly Write[] | 'close'

/** First that it is ready, then what became of each batch, at last that it may be ended. */
export type WriterThreadAnswer = 'ready' | Written | 'closed'

interface WriterThreadData {
  readonly file: string
  /** The file that the store was opened on. */
  readonly identity: string | undefined
}

if (!Bun.isMainThread) {
  let committer: ReturnType<typeof createCommitter> | undefined
  const answer = (message: WriterThreadAnswer) => postMessage(message)
  const take = gather(batch => {
    if (!committer) throw new Error('The first message names the file')
    answer(committer.commit(batch))
  })
  addEventListener('message', ({ data }: MessageEvent<WriterThreadMessage>) => {
    if (data === 'close') {
      // After what was gathered before it.
      setImmediate(() => {
        committer?.close()
        answer('closed')
      })
    } else if ('file' in data) {
      committer = createCommitter(data.file, data.identity)
      committer.open()
      answer('ready')
    } else take(data)
  })
}
