const sane = /^[A-Za-z0-9._~:/+=@-]{1,128}$/

/** The client's own id where it is safe to repeat in a header and in a log line, else a new one. */
export function requestIdOf(header: string | null): string {
  return header !== null && sane.test(header) ? header : crypto.randomUUID()
}
