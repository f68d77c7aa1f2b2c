const sane = /^[A-Za-z0-9._~:/+=@-]{1,128}$/

/** The client's own id if it is safe to repeat in a header and in a log line, else a new one. */
export function requestIdOf(
  own: string | null,
  authorization: string | null,
  environmentKey?: string | undefined,
): string {
  if (own === null || !sane.test(own)) return crypto.randomUUID()
  const token = authorization?.replace(/^\w+ +/, '')
  return overlaps(own, token) || overlaps(own, environmentKey) || /pets_\w{36}/.test(own)
    ? crypto.randomUUID()
    : own
}

const keyCharsMin = 16

/** Whether an id holds a key, or a long part of one, that was sent as an id by mistake. */
function overlaps(id: string, key: string | undefined): boolean {
  return (
    key !== undefined &&
    ((key.length >= keyCharsMin && id.includes(key)) || (id.length >= keyCharsMin && key.includes(id)))
  )
}
