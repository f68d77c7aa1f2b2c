import { readCode, SetupError, type StoreProblem, type StoreTrouble } from '../errors.ts'

/** What the operator has to do about each problem of a store. */
const adviceFor: Readonly<Record<StoreProblem, string>> = {
  locked: 'stop that process, or try again',
  'disk-full': 'free some space',
  temporary: 'try again',
  'newer-schema': 'upgrade the program',
  'not-empty': 'import without --keep-ids, or set DATABASE_URL to an empty store',
  'ids-exhausted': 'import into an empty store',

  'no-file': 'is this the folder of the store? If not, go there, or set DATABASE_URL to the file',
  'wrong-file': 'set DATABASE_URL to another file',
  'not-writable': 'let this user write the file and its folder, or set DATABASE_URL to another file',
  'not-readable': 'let this user read it',
  'failing-disk': 'check the file and its disk',
  damaged: 'stop the servers, move the file away with its -wal and -shm files, and restore a backup',
  'bad-backup': 'name another backup',
  'foreign-trigger': 'remove the triggers that you have added to the store',

  'no-answer': 'check host, port and sslmode in DATABASE_URL, or start PostgreSQL there',
  'no-primary': 'name the primary in DATABASE_URL, or a proxy that finds it',
  'no-free-connection':
    "raise the server's max_connections, or the CONNECTION LIMIT of the role or the database, or lower --database-pool of the servers",
  pooler: 'set PETSTORE_DATABASE_POOLER=true',
  isolation: 'run this statement',
  'host-rules':
    'check the user, add a line to pg_hba.conf of the server, or set sslmode=require in DATABASE_URL if it demands TLS',
  'refused-user': 'check user and password in DATABASE_URL',
  'certificate-name': 'use that name in DATABASE_URL, or choose another sslmode',
  'untrusted-certificate': "set NODE_EXTRA_CA_CERTS to its authority's file, or choose another sslmode in DATABASE_URL",
  'missing-right':
    'GRANT it SELECT, INSERT, UPDATE and DELETE on the tables, EXECUTE on the functions, and TEMPORARY on the database for an import; the first start needs CREATE on the schema, and an upgrade the owner of the tables',
  'no-tables': 'set DATABASE_URL to the database of the store; a first start of the server creates the tables',
  'no-schema': 'create it, or change the search_path',
  'wrong-database': "create a database for the store, with ENCODING 'UTF8', and set DATABASE_URL to it",
}

/** What happened and what to do. */
export function withAdvice({ message, problem }: StoreTrouble): string {
  return problem ? `${message}; ${adviceFor[problem]}` : message
}

/** What a system error means, by its code, and what to do. */
type Causes = readonly (readonly [codes: RegExp, happened: string, advice?: string])[]

/** A SetupError if one of the problems has the code of the error; otherwise the error itself. */
export function explain(what: string, error: unknown, problems: Causes): unknown {
  const code = readCode(error)
  const [, happened, advice] = problems.find(([codes]) => codes.test(code)) ?? []
  if (happened === undefined) return error
  return new SetupError(`${what}: ${happened}${code && ` (${code})`}${advice ? `; ${advice}` : ''}`, { cause: error })
}

/** Why a server cannot be reached, by the code of `fetch`; undefined if it is another error. */
export function connectionProblem(url: string, error: unknown, program: string): SetupError | undefined {
  const problem = explain(`Cannot reach ${url}`, error, [
    [/^ECONNREFUSED$/, 'nothing answers there', `start it with ${program} serve, or check the address`],
    [/^(ENOTFOUND|EAI_AGAIN)$/, 'no address is known for this host', 'check its name'],
    [/^(ECONNRESET|EPIPE)$/, 'the server closed the connection', 'if it uses TLS, the address needs https://'],
    [/^EPROTO$/, 'the TLS handshake failed', 'if the server has no TLS, the address needs http://'],
    [/ALTNAME/, 'its certificate is for another host name', 'use that name'],
    [/EXPIRED/, 'its certificate has expired', 'renew it'],
    [/CERT|^UNABLE_TO_/, 'its certificate is not trusted', 'set NODE_EXTRA_CA_CERTS to the file of its authority'],
  ])
  return problem instanceof SetupError ? problem : undefined
}
