import type { Driver } from '../load/driver.ts'
import type { Measured } from '../load/load.ts'
import type { Running } from './start.ts'
import type { Work } from './work.ts'

/** One server under one load, for some seconds. */
export interface Sample extends Measured {
  /** For each request; absent where the system does not tell. */
  readonly cpuMicroseconds?: number
}

export async function measure(
  driver: Driver,
  server: Running,
  { name, connections }: Pick<Work, 'name' | 'connections'>,
  seconds: number,
): Promise<Sample> {
  const requests = server.contender.requests(name, server.animals)
  const before = server.usage()
  const measured = await driver.drive({ origin: server.origin, requests, connections, seconds })
  const after = server.usage()
  if (!before || !after || measured.requests === 0) return measured
  return { ...measured, cpuMicroseconds: ((after.cpuMs - before.cpuMs) * 1_000) / measured.requests }
}
