import type { Database } from 'bun:sqlite'
import type { DamageGuard } from './fault.ts'
import type { Writer } from './writer.ts'

/**
 * Tells of changes by anybody. The file is asked once in a turn of the event loop, because asking takes and gives back a
 * lock: a fifth of the whole of a request. So what our own writer has committed is told from the moment at which somebody
 * hears of it, and what another process has committed from the next turn on. A request that waits on an open
 * connection is read in a later turn than the one in which it came.
 */
export function createVersion(
  reading: Database,
  writer: Pick<Writer, 'commits'>,
  guard: DamageGuard,
): () => unknown {
  // Two commits by this connection would look the same to it; but this one only reads.
  const ask = reading.query<{ data_version: bigint }, []>('PRAGMA data_version')
  let known: bigint | undefined
  let commits = 0
  const forget = () => {
    known = undefined
  }
  return () => {
    if (known === undefined) setImmediate(forget)
    else if (commits === writer.commits) return known
    commits = writer.commits
    known = guard.run(() => ask.get()?.data_version)
    return known
  }
}
