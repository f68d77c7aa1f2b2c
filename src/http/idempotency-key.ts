import { cannotRead, type Field } from '../field.ts'

const charsMax = 255

/** A client's own name for one request: visible ASCII, bare or in quotes. Both spellings are the same key. */
export const idempotencyKey: Field<string> = {
  schema: { type: 'string', minLength: 1, pattern: '^[\\x21-\\x7e]+$' },
  expected: `1 to ${charsMax} visible ASCII characters, bare or in double quotes`,
  read(value) {
    if (typeof value !== 'string') return undefined
    const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(value)?.[1]?.replace(/\\(.)/g, '$1')
    const key = quoted ?? value
    if (quoted === undefined && value.startsWith('"')) return undefined
    return /^[\x21-\x7e]+$/.test(key) && key.length <= charsMax ? key : undefined
  },
}

export type ReadIdempotencyKey =
  | { readonly ok: true; readonly value: string | undefined }
  | { readonly ok: false; readonly problem: string }

/** No header is no key, and no problem. */
export function readIdempotencyKey(header: string | null): ReadIdempotencyKey {
  if (header === null) return { ok: true, value: undefined }
  const value = idempotencyKey.read(header)
  if (value !== undefined) return { ok: true, value }
  return { ok: false, problem: cannotRead('Idempotency-Key', header, idempotencyKey.expected) }
}
