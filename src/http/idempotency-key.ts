import { type Field, invalid } from '../field.ts'

const charsMax = 255

const bare = `[!#-~][!-~]{0,${charsMax - 1}}`
const quoted = `"(?:[!#-\\[\\]-~]|\\\\["\\\\]){1,${charsMax}}"`
const form = new RegExp(`^(?:${bare}|${quoted})$`)

/** A client's own name for one request: visible ASCII, bare or in quotes. Both spellings are the same key. */
export const idempotencyKey: Field<string> = {
  // In quotes, each character may have a backslash before it.
  schema: { type: 'string', minLength: 1, maxLength: 2 * charsMax + 2, pattern: form.source },
  expected: `1 to ${charsMax} visible ASCII characters, bare or in double quotes`,
  read(value) {
    if (typeof value !== 'string' || !form.test(value)) return undefined
    return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value
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
  return { ok: false, problem: invalid('Idempotency-Key', header, idempotencyKey) }
}
