/** A UUID, version 4. Browsers hide randomUUID from pages that did not come over HTTPS. */
export function newIdempotencyKey(): string {
  return typeof crypto.randomUUID === 'function'
    ? crypto.randomUUID()
    : uuidOf(crypto.getRandomValues(new Uint8Array(16)))
}

/** A version 4 UUID of 16 random bytes. */
export function uuidOf(random: Uint8Array): string {
  const bytes = [...random]
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const digits = bytes.map(byte => byte.toString(16).padStart(2, '0')).join('')
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Throws a TypeError for what the service would not take. */
export function readIdempotencyKey(key: string): string {
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw new TypeError('Cannot use idempotencyKey: expected 1 to 255 visible ASCII characters')
}
