import { statSync } from 'node:fs'
import { StoreUnavailable } from '../../errors.ts'

/** Which file it is, whatever its name; undefined where there is none. */
export function identityOf(file: string): string | undefined {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat && `${stat.dev}:${stat.ino}`
}

/** A file that was moved away can be written on, and everything would be lost with it. */
export function refuseAnother(file: string, identity: string | undefined): void {
  if (identityOf(file) !== identity) throw new StoreUnavailable(`${file} was moved, replaced or deleted`)
}
