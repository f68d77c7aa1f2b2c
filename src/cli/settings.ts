import { readFileSync } from 'node:fs'
import { oneOf, oneOfText } from '../field.ts'
import { isAddressRange } from '../http/client-address.ts'
import { logLevels } from '../log.ts'
import { databaseUrlProblem, isPostgres, readUrlProblem } from '../store/open.ts'
import { type Command, integer, optional, setting, switchOption, type Values } from './command.ts'

const postgresUrl = 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'
const keyCharsMin = 16
const time = { value: 'time', expected: 'a time from 0s to 300s, such as 500ms or 30s', read: readTimeMs }
export const baseUrl = {
  value: 'url',
  expected: 'an http or https URL without user, query or fragment, such as https://pets.example.com/v1',
  read: readBaseUrl,
}
const pemFile = {
  value: 'file',
  expected: 'a file that this user may read',
  read: readFile,
}

/** Every setting of `serve`, in the order of the help and the documentation. */
export const settings = {
  port: setting('port', 'PORT', '8080', {
    short: 'p',
    help: 'Port to listen on; 0 takes any free port',
    ...integer(0, 65_535),
  }),
  host: setting('host', 'HOST', '127.0.0.1', {
    value: 'address',
    help: 'Address to listen on: 0.0.0.0 for all IPv4 addresses, :: for all addresses',
    expected: 'a host name or an IP address',
    read: readHost,
  }),
  reusePort: {
    ...switchOption('reuse-port', 'Share the port with other instances of the same store (Linux only)'),
    variable: 'PETSTORE_REUSE_PORT',
  },
  databaseUrl: setting('database-url', 'DATABASE_URL', 'sqlite:data/petstore.db', {
    value: 'url',
    help: `The store: sqlite:FILE, or ${postgresUrl}`,
    expected: `sqlite:FILE or ${postgresUrl}`,
    read: url => (databaseUrlProblem(url) === undefined ? url : undefined),
    // It may contain a password.
    problem: url => `is invalid: ${databaseUrlProblem(url)}`,
  }),
  readUrl: optional('read-url', 'PETSTORE_READ_URL', 'the store itself', {
    value: 'url',
    help: 'PostgreSQL only: a second address for reads, such as a replica, which may lag behind',
    expected: postgresUrl,
    read: url => (readUrlProblem(url) === undefined ? url : undefined),
    problem: url => `is invalid: ${readUrlProblem(url)}`,
  }),
  databasePooler: {
    ...switchOption('database-pooler', 'PostgreSQL only: the address is a connection pooler, such as PgBouncer'),
    variable: 'PETSTORE_DATABASE_POOLER',
  },
  databasePool: setting('database-pool', 'PETSTORE_DATABASE_POOL', '10', {
    help: 'PostgreSQL only: connections for reads, 1 to 1000; 2 more are for writes',
    ...integer(1, 1_000),
  }),
  waitForDatabaseMs: setting('wait-for-database', 'PETSTORE_WAIT_FOR_DATABASE', '0s', {
    help: 'How long to retry at the start if the database does not answer, such as 30s; at most 300s',
    ...time,
  }),
  environmentKey: optional('api-key', 'PETSTORE_API_KEY', 'none', {
    value: 'key',
    help: `An API key to accept besides those in the store, at least ${keyCharsMin} characters. Prefer the variable: other users can see flags in the process list`,
    expected: 'visible ASCII characters',
    read: key => (new RegExp(`^[\\x21-\\x7e]{${keyCharsMin},}$`).test(key) ? key : undefined),
    problem: key => `is invalid (${key.length} characters): expected at least ${keyCharsMin} visible ASCII characters`,
  }),
  publicUrl: optional('public-url', 'PETSTORE_PUBLIC_URL', 'relative links', {
    help: 'Base URL as clients see it, for links and the OpenAPI document; /v1 is added if it is missing',
    ...baseUrl,
  }),
  stagingUrl: optional('staging-url', 'PETSTORE_STAGING_URL', 'none', {
    help: 'Base URL of the staging deployment, for the OpenAPI document',
    ...baseUrl,
  }),
  rateLimit: optional('rate-limit', 'PETSTORE_RATE_LIMIT', 'no limit', {
    value: 'rate',
    help: 'Requests that each key may send to this instance, such as 100/s, 600/m or 5000/h',
    expected: 'requests per second, minute or hour, such as 100/s, 600/m or 5000/h',
    read: readRate,
  }),
  drainMs: setting('drain-time', 'PETSTORE_DRAIN_TIME', '10s', {
    help: 'How long a stop waits for requests in progress, such as 500ms or 30s; at most 300s',
    ...time,
  }),
  corsOrigins: optional('cors-origins', 'PETSTORE_CORS_ORIGINS', 'none', {
    value: 'origins',
    help: 'Origins whose pages may use the API from a browser, separated by commas',
    expected: 'origins separated by commas, such as https://shop.example.com,http://localhost:3000',
    read: listOf(text => /^https?:/.test(text) && URL.parse(text)?.origin === text),
  }),
  trustedProxies: optional('trusted-proxies', 'PETSTORE_TRUSTED_PROXIES', 'none', {
    value: 'addresses',
    help: "Proxies whose X-Forwarded-For gives the client's address for the log: IP addresses and CIDR ranges, separated by commas",
    expected: 'IP addresses and CIDR ranges separated by commas, such as 127.0.0.1,10.0.0.0/8,fd00::/8',
    read: listOf(isAddressRange),
  }),
  tlsCert: optional('tls-cert', 'PETSTORE_TLS_CERT', 'plain HTTP', {
    help: 'Certificate file (PEM); with the key, the server speaks HTTPS',
    ...pemFile,
  }),
  tlsKey: optional('tls-key', 'PETSTORE_TLS_KEY', 'plain HTTP', {
    help: "File with the certificate's key (PEM)",
    ...pemFile,
  }),
  logLevel: setting('log-level', 'PETSTORE_LOG_LEVEL', 'info', {
    value: 'level',
    help: `${oneOfText(logLevels)}; info logs every request`,
    ...oneOf(logLevels),
  }),
}

export type ServeSettings = Values<typeof settings>

type Check = Required<Command<typeof settings>>['check']

export const checkSettings: Check = ({ reusePort, readUrl, databaseUrl }, isGiven) => {
  const problems: string[] = []
  if (reusePort && process.platform !== 'linux') {
    problems.push('--reuse-port works on Linux only: put a proxy in front of several instances')
  }
  if (readUrl && databaseUrl && !isPostgres(databaseUrl)) {
    problems.push('--read-url needs a PostgreSQL store: remove it, or set DATABASE_URL')
  }
  if (isGiven('tlsCert') !== isGiven('tlsKey')) problems.push('--tls-cert and --tls-key: set both or neither')
  return problems
}

/** The address by which a client on the same machine reaches the server: `http://127.0.0.1:8080`. */
export function formatOrigin({ host, port, tlsCert }: Pick<ServeSettings, 'host' | 'port' | 'tlsCert'>): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${tlsCert ? 'https' : 'http'}://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

function readHost(text: string): string | undefined {
  const host = text.replace(/^\[(.*)\]$/, '$1')
  return /^[A-Za-z0-9._:-]+$/.test(host) ? host : undefined
}

/** The text in the file. An empty one is invalid: a server with an empty certificate would speak plain HTTP. */
function readFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8') || undefined
  } catch {
    return undefined
  }
}

function readTimeMs(text: string): number | undefined {
  const [, amount, unit] = /^(\d{1,6})(ms|s)$/.exec(text) ?? []
  const ms = Number(amount ?? Number.NaN) * (unit === 's' ? 1_000 : 1)
  return ms <= 300_000 ? ms : undefined
}

function readRate(text: string): { readonly requests: number; readonly seconds: number } | undefined {
  const [, requests, unit] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? []
  return unit === undefined ? undefined : { requests: Number(requests), seconds: { s: 1, m: 60, h: 3_600 }[unit] ?? 0 }
}

function listOf(isValid: (item: string) => boolean) {
  return (text: string): readonly string[] | undefined => {
    const items = text.split(',').map(item => item.trim())
    return items.every(isValid) ? items : undefined
  }
}

/** Stricter than the client's check: only RFC 3986 characters, because a public URL goes into headers. */
const strictUrl =
  /^https?:\/\/(?:\[[0-9a-f:.]+\]|[\w.\u0080-\uffff-]+)(?::\d+)?(?:\/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?$/i

/** The interface's base addresses end in /v1: it is added if it is missing. */
function readBaseUrl(text: string): string | undefined {
  const url = strictUrl.test(text) ? URL.parse(text) : null
  return url ? `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/(?<!\/v1)$/, '/v1') : undefined
}
