const sane = /^[A-Za-z0-9._~:/+=@-]{1,128}$/

/** The client's own id where it is safe to repeat in a header and in a log line, else a new one. */
export function requestIdOf(own: string | null, authorization: string | null): string {
  return own !== null && sane.test(own) && !isKey(own, authorization) ? own : crypto.randomUUID()
}

/** A key that was sent as an id by mistake must not get into the log. No key is shorter than 16 characters. */
function isKey(text: string, authorization: string | null): boolean {
  return text.length >= 16 && (authorization?.includes(text) === true || /pets_\w{36}/.test(text))
}
