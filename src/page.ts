import type { Field } from './field.ts'
import type { PetStatus } from './pet.ts'

const limitMin = 1
const limitMax = 100
export const limitDefault = 20

/** A query parameter: text, in the one spelling that a JSON integer has. */
export const pageLimit: Field<number> = {
  schema: { type: 'integer', minimum: limitMin, maximum: limitMax, default: limitDefault },
  expected: `a whole number from ${limitMin} to ${limitMax}`,
  read(value) {
    if (typeof value !== 'string' || !/^[1-9][0-9]{0,2}$/.test(value)) return undefined
    return Number(value) <= limitMax ? Number(value) : undefined
  },
}

const cursorBytes = 13
const cursorForm = 'a cursor from the Link header of this list, used with the same status'

/**
 * Where a walk through the list goes on, for one status: that id, with a checksum over id and status.
 * The same request always gives the same cursor, and every other text is refused: reading writes the cursor anew.
 */
export function writeCursor(after: bigint, status: PetStatus | undefined): string {
  const bytes = Buffer.alloc(cursorBytes)
  bytes.writeUInt8(1)
  bytes.writeBigInt64BE(after, 1)
  bytes.writeUInt32BE(Bun.hash.crc32(`${after} ${status ?? ''}`), 9)
  return bytes.toString('base64url')
}

/** The id that a cursor stands for; undefined where we did not make it, or made it for another status. */
export function cursorFor(status: PetStatus | undefined): Field<bigint> {
  return {
    schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{18}$' },
    expected: cursorForm,
    read(value) {
      if (typeof value !== 'string') return undefined
      const bytes = Buffer.from(value, 'base64url')
      if (bytes.length !== cursorBytes) return undefined
      const after = bytes.readBigInt64BE(1)
      return writeCursor(after, status) === value ? after : undefined
    },
  }
}
