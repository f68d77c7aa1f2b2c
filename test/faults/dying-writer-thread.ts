import '../../src/store/sqlite/writer-thread.ts'
import type { WriterRequest } from '../../src/store/sqlite/writer.ts'

/** An animal of this name ends the thread before anything of its batch is written. */
export const diesBefore = 'Die'
/** An animal of this name ends the thread when its batch is on disk, before the reply. */
export const diesAfter = 'Die after the commit'

/** The real writer thread, except for the animals that end it. */
if (!Bun.isMainThread) {
  const reply = globalThis.postMessage
  const namesIn = (data: WriterRequest) => (Array.isArray(data) ? data.map(([, first]) => first?.name ?? first) : [])
  // Captured, so that it runs before the real thread's own listener.
  addEventListener(
    'message',
    ({ data }: MessageEvent<WriterRequest>) => {
      const names = namesIn(data)
      if (names.includes(diesBefore)) process.exit(1)
      globalThis.postMessage = names.includes(diesAfter) ? () => process.exit(1) : reply
    },
    { capture: true },
  )
}
