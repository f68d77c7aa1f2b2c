import type { Field, Rule } from './field.ts'
import type { Pet, PetStatus } from './pet.ts'

export interface PageRequest {
  readonly limit: number
  readonly status?: PetStatus | undefined
  /** Only animals with a higher id: the last one of the previous page. */
  readonly after?: bigint | undefined
}

export interface Page {
  /** Ascending by id. */
  readonly pets: readonly Pet[]
  /** Whether animals follow. */
  readonly more: boolean
}

export const limitMax = 100
export const limitDefault = 20

export const pageLimit: Field<number, string> = {
  schema: { type: 'integer', minimum: 1, maximum: limitMax, default: limitDefault },
  expected: `an integer from 1 to ${limitMax}`,
  read: text => (/^[1-9][0-9]{0,2}$/.test(text) && Number(text) <= limitMax ? Number(text) : undefined),
}

const cursorBytes = 13

/** A version byte, the last id of a page, and a checksum over id and status. Equal arguments give equal cursors. */
export function writeCursor(after: bigint, status: PetStatus | undefined): string {
  const bytes = Buffer.alloc(cursorBytes)
  bytes.writeUInt8(1)
  bytes.writeBigInt64BE(after, 1)
  bytes.writeUInt32BE(Bun.hash.crc32(`${after} ${status ?? ''}`), 9)
  return bytes.toString('base64url')
}

/** Leaves room for other forms. It has no pattern: clients must not depend on the form of a cursor. */
export const cursorSchema = { type: 'string', minLength: 1, maxLength: 256 }

/** Reads the id in a cursor. A cursor that we did not write, or wrote for another status, is invalid. */
export function cursorFor(status: PetStatus | undefined): Rule<bigint, string> {
  return {
    expected: 'the X-Next-Cursor of a page of this list, with the same status',
    read(text) {
      const bytes = Buffer.from(text, 'base64url')
      if (bytes.length !== cursorBytes) return undefined
      const after = bytes.readBigInt64BE(1)
      // Writing it again also checks version, checksum and spelling.
      return writeCursor(after, status) === text ? after : undefined
    },
  }
}
