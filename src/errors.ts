/** The store cannot serve the request now, but may later: a full disk, a lock, a lost connection. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

/** The store's file is damaged and stays unavailable until a backup is restored. Logged once, by the store. */
export class StoreDamaged extends StoreUnavailable {}

export const damageAdvice =
  'stop the servers, move the file away with its -wal and -shm files, and run petstore restore with a backup'

/** No id is left for another animal. Retrying does not help. */
export class IdsExhausted extends Error {
  override readonly name = 'IdsExhausted'
}

/** The program cannot start or continue. The message is one line for the operator: the problem and what to do. */
export class SetupError extends Error {
  override readonly name = 'SetupError'
}

/** The database refuses connections or does not answer. A later attempt may succeed. */
export class StoreUnreachable extends SetupError {}

/** It is unknown whether a change was committed: either the whole change is stored, or none of it. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'
}

/** What to do about a system or database error, by its code. */
export type Problems = readonly (readonly [codes: RegExp, problem: string])[]

/** A SetupError that explains an error by its code; an error with another code unchanged. */
export function explained(what: string, error: unknown, problems: Problems): unknown {
  const code = error instanceof SetupError ? '' : codeOf(error)
  const why = problems.find(([codes]) => codes.test(code))?.[1]
  return why ? new SetupError(`${what}: ${why} (${code})`, { cause: error }) : error
}

/** Why a server cannot be reached, by the code of `fetch`. */
export const connectionProblems: Problems = [
  [/^ECONNREFUSED$/, 'nothing answers there; start it with petstore serve, or check the address'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'no address is known for this host; check its name'],
  [/^(ECONNRESET|EPIPE)$/, 'the server closed the connection; if it uses TLS, the address needs https://'],
  [/^EPROTO$/, 'the TLS handshake failed; if the server has no TLS, the address needs http://'],
  [/ALTNAME/, 'its certificate is for another host name; use that name'],
  [/EXPIRED/, 'its certificate has expired; renew it'],
  [/CERT|^UNABLE_TO_/, 'its certificate is not trusted; set NODE_EXTRA_CA_CERTS to the file of its authority'],
]

/** The code of a system or database error, such as ENOENT; empty if it has none. */
export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : ''
}
