import type { Field } from './field.ts'
import type { Pet, PetStatus } from './pet.ts'

export interface PageRequest {
  readonly limit: number
  readonly status?: PetStatus
  /** Only animals with a higher id: the last one of the previous page. */
  readonly after?: bigint
}

export interface Page {
  /** Ascending by id. */
  readonly pets: readonly Pet[]
  /** Whether animals follow. */
  readonly more: boolean
}

const limitMin = 1
const limitMax = 100
export const limitDefault = 20

/** Reads a query parameter, so the value is text. */
export const pageLimit: Field<number> = {
  schema: { type: 'integer', minimum: limitMin, maximum: limitMax, default: limitDefault },
  expected: `an integer from ${limitMin} to ${limitMax}`,
  read(value) {
    if (typeof value !== 'string' || !/^[1-9][0-9]{0,2}$/.test(value)) return undefined
    return Number(value) <= limitMax ? Number(value) : undefined
  },
}

/** Leaves room for other forms: today's have 18 characters. */
const cursorCharsMax = 256
const cursorBytes = 13
const cursorVersion = 1

/** Reused: `toString` copies the bytes. */
const cursorBuffer = Buffer.alloc(cursorBytes)

/** A version byte, the last id of a page, and a checksum over id and status. Equal arguments give equal cursors. */
export function writeCursor(after: bigint, status: PetStatus | undefined): string {
  cursorBuffer.writeUInt8(cursorVersion)
  cursorBuffer.writeBigInt64BE(after, 1)
  cursorBuffer.writeUInt32BE(Bun.hash.crc32(`${after} ${status ?? ''}`), 9)
  return cursorBuffer.toString('base64url')
}

/** Reads the id in a cursor. A cursor that we did not write, or wrote for another status, is invalid. */
export function cursorFor(status: PetStatus | undefined): Field<bigint> {
  return {
    // No pattern: clients must not depend on the form of a cursor.
    schema: { type: 'string', minLength: 1, maxLength: cursorCharsMax },
    expected: 'the X-Next-Cursor of a page of this list, with the same status',
    read(value) {
      if (typeof value !== 'string') return undefined
      const bytes = Buffer.from(value, 'base64url')
      if (bytes.length !== cursorBytes) return undefined
      const after = bytes.readBigInt64BE(1)
      // Writing it again also checks version, checksum and spelling.
      return writeCursor(after, status) === value ? after : undefined
    },
  }
}
