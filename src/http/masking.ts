export const requestIdCharsMax = 128
const safeId = new RegExp(`^[A-Za-z0-9._~:/+=@-]{1,${requestIdCharsMax}}$`)
const storedKey = /pets_[A-Za-z0-9]{12}/
/** This many characters of a key in a row make an id unsafe. */
export const keyRunChars = 12
/** A longer token is compared up to here. */
const comparedTokenChars = 300

/** The client's own id if it is safe in headers and logs and holds no key; otherwise a new one. */
export function requestId(
  sent: string | null,
  authorization: string | null,
  environmentKey: string | undefined,
): string {
  if (sent === null || !safeId.test(sent) || storedKey.test(sent)) return crypto.randomUUID()
  // Only the whole key: comparing its parts would reveal them to a client that guesses.
  if (environmentKey !== undefined && sent.includes(environmentKey)) return crypto.randomUUID()
  return authorization !== null && sharesRun(sent, tokenOf(authorization)) ? crypto.randomUUID() : sent
}

function tokenOf(authorization: string): string {
  const afterScheme = authorization.slice(authorization.search(/[ \t]/) + 1)
  return afterScheme.trimStart().slice(0, comparedTokenChars)
}

/** Whether they have `keyRunChars` consecutive characters in common. The work is bounded by the lengths of both. */
function sharesRun(id: string, token: string): boolean {
  const isShared = (part: string) => token.includes(part)
  const blockChars = keyRunChars / 2
  // Quick for most ids: a common run would contain at least one whole block of the id, half as long.
  return partsOf(id, blockChars, blockChars).some(isShared) && partsOf(id, keyRunChars, 1).some(isShared)
}

/** The parts of a text with so many characters, each `step` characters after the one before. */
function partsOf(text: string, chars: number, step: number): readonly string[] {
  const count = Math.max(0, Math.floor((text.length - chars) / step) + 1)
  return Array.from({ length: count }, (_, index) => text.slice(index * step, index * step + chars))
}

const loggedSegmentsMax = 10
const loggedPathCharsMax = 200
/** Keys are longer. */
const loggedSegment = /^[A-Za-z0-9._~-]{0,15}$/

/** The path for the log: `…` replaces the environment key, and segments that may be keys, put there by mistake. */
export function loggedPath(path: string, environmentKey = ''): string {
  // Enough for a key that begins at the last character, with every character encoded as three.
  const decoded = decodeVisible(path.slice(0, 3 * (loggedPathCharsMax + environmentKey.length)))
  const masked = environmentKey === '' ? decoded : maskKey(decoded, environmentKey)
  const [, ...segments] = masked.slice(0, loggedPathCharsMax).split('/', loggedSegmentsMax + 2)
  const isCut = (index: number) =>
    index === loggedSegmentsMax || (masked.length > loggedPathCharsMax && index === segments.length - 1)
  const shown = segments.map((segment, index) => (loggedSegment.test(segment) && !isCut(index) ? segment : '…'))
  return `/${shown.join('/')}`
}

/** Decodes visible ASCII only: no other character occurs in keys. Bun reads a backslash in a path as a slash. */
function decodeVisible(text: string): string {
  let decoded = ''
  let rest = 0
  for (let at = text.indexOf('%'); at !== -1; at = text.indexOf('%', at + 1)) {
    const code = Number.parseInt(text.slice(at + 1, at + 3), 16)
    if (code < 0x21 || code > 0x7e || Number.isNaN(code)) continue
    decoded += text.slice(rest, at) + String.fromCharCode(code)
    rest = at + 3
  }
  return (decoded + text.slice(rest)).replaceAll('\\', '/')
}

/** Masks the key, as it is and decoded. The text keeps its length, so that a key at a limit is masked whole. */
function maskKey(decoded: string, key: string): string {
  const forms = [key.replaceAll('\\', '/'), decodeVisible(key)]
  return forms.reduce((text, form) => text.replaceAll(form, '…'.repeat(form.length)), decoded)
}
