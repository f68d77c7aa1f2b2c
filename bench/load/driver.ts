import type { Session } from '../harness/session.ts'
import { driveWithAutocannon } from './autocannon.ts'
import type { Load, Measured } from './load.ts'
import { driveWithWrk } from './wrk.ts'

/** A program that makes load. */
export interface Driver {
  readonly name: 'wrk' | 'autocannon'
  drive(load: Load): Promise<Measured>
}

export function createDriver(session: Session): Driver {
  const spawn: Session['spawn'] = (command, options) =>
    // The load would come from another machine: here it stands back for the server.
    session.spawn(['nice', '-n', '10', ...command], options)
  if (Bun.which('wrk')) return { name: 'wrk', drive: load => driveWithWrk(load, spawn) }
  return { name: 'autocannon', drive: load => driveWithAutocannon(load, spawn) }
}
