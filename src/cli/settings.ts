import { existsSync } from 'node:fs'
import { oneOf, oneOfText } from '../field.ts'
import { isAddressRange } from '../http/client-address.ts'
import { logLevels } from '../log.ts'
import { databaseUrlProblem, isPostgres, openStores, readUrlProblem } from '../store/open.ts'
import type { Stores } from '../store-contract.ts'
import { type Command, findSimilar, integer, optional, setting, switchOption, type Values } from './arguments.ts'
import type { Io } from './output.ts'

const postgresUrl = 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'
const keyCharsMin = 16
const time = { expected: 'a time from 0s to 300s, such as 500ms or 30s', read: readTimeMs }
export const baseUrl = {
  expected: 'an http or https URL without user, query or fragment, such as https://pets.example.com/v1',
  read: readBaseUrl,
}
const pemFile = { expected: 'a file that exists', read: (file: string) => (existsSync(file) ? file : undefined) }

/** Every setting of `serve`, in the order of the help and the documentation. */
export const settings = {
  port: setting('PORT', '--port, -p <number>', '8080', {
    help: 'Port to listen on; 0 takes any free port',
    ...integer(0, 65_535),
  }),
  host: setting('HOST', '--host <address>', '127.0.0.1', {
    help: 'Address to listen on: 0.0.0.0 for all IPv4 addresses, :: for all addresses',
    expected: 'a host name or an IP address',
    read: readHost,
  }),
  reusePort: {
    ...switchOption('--reuse-port', 'Share the port with other instances of the same store (Linux only)'),
    variable: 'PETSTORE_REUSE_PORT',
  },
  databaseUrl: setting('DATABASE_URL', '--database-url <url>', 'sqlite:data/petstore.db', {
    help: `The store: sqlite:FILE, or ${postgresUrl}`,
    expected: `sqlite:FILE or ${postgresUrl}`,
    read: url => (databaseUrlProblem(url) === undefined ? url : undefined),
    // It may contain a password.
    problem: url => `is invalid: ${databaseUrlProblem(url)}`,
  }),
  readUrl: optional('PETSTORE_READ_URL', '--read-url <url>', 'the store itself', {
    help: 'PostgreSQL only: a second address for reads, such as a replica, which may lag behind',
    expected: postgresUrl,
    read: url => (readUrlProblem(url) === undefined ? url : undefined),
    problem: url => `is invalid: ${readUrlProblem(url)}`,
  }),
  databasePooler: {
    ...switchOption('--database-pooler', 'PostgreSQL only: the address is a connection pooler, such as PgBouncer'),
    variable: 'PETSTORE_DATABASE_POOLER',
  },
  databasePool: setting('PETSTORE_DATABASE_POOL', '--database-pool <number>', '10', {
    help: 'PostgreSQL only: connections for reads, 1 to 1000; 2 more are for writes',
    ...integer(1, 1_000),
  }),
  waitForDatabaseMs: setting('PETSTORE_WAIT_FOR_DATABASE', '--wait-for-database <time>', '0s', {
    help: 'How long to retry at the start if the database does not answer, such as 30s; at most 300s',
    ...time,
  }),
  environmentKey: optional('PETSTORE_API_KEY', '--api-key <key>', 'none', {
    help: `An API key to accept besides those in the store, at least ${keyCharsMin} characters. Prefer the variable: other users can see flags in the process list`,
    expected: 'visible ASCII characters',
    read: key => (new RegExp(`^[\\x21-\\x7e]{${keyCharsMin},}$`).test(key) ? key : undefined),
    problem: key => `is invalid (${key.length} characters): expected at least ${keyCharsMin} visible ASCII characters`,
  }),
  publicUrl: optional('PETSTORE_PUBLIC_URL', '--public-url <url>', 'relative links', {
    help: 'Base URL as clients see it, for links and the OpenAPI document; /v1 is added if it is missing',
    ...baseUrl,
  }),
  stagingUrl: optional('PETSTORE_STAGING_URL', '--staging-url <url>', 'none', {
    help: 'Base URL of the staging deployment, for the OpenAPI document',
    ...baseUrl,
  }),
  rateLimit: optional('PETSTORE_RATE_LIMIT', '--rate-limit <rate>', 'no limit', {
    help: 'Requests that each key may send to this instance, such as 100/s, 600/m or 5000/h',
    expected: 'requests per second, minute or hour, such as 100/s, 600/m or 5000/h',
    read: readRate,
  }),
  drainMs: setting('PETSTORE_DRAIN_TIME', '--drain-time <time>', '10s', {
    help: 'How long a stop waits for requests in progress, such as 500ms or 30s; at most 300s',
    ...time,
  }),
  corsOrigins: optional('PETSTORE_CORS_ORIGINS', '--cors-origins <origins>', 'none', {
    help: 'Origins whose pages may use the API from a browser, separated by commas',
    expected: 'origins separated by commas, such as https://shop.example.com,http://localhost:3000',
    read: listOf(text => /^https?:/.test(text) && URL.parse(text)?.origin === text),
  }),
  trustedProxies: optional('PETSTORE_TRUSTED_PROXIES', '--trusted-proxies <addresses>', 'none', {
    help: "Proxies whose X-Forwarded-For gives the client's address for the log: IP addresses and CIDR ranges, separated by commas",
    expected: 'IP addresses and CIDR ranges separated by commas, such as 127.0.0.1,10.0.0.0/8,fd00::/8',
    read: listOf(isAddressRange),
  }),
  tlsCert: optional('PETSTORE_TLS_CERT', '--tls-cert <file>', 'plain HTTP', {
    help: 'Certificate file (PEM); with the key, the server speaks HTTPS',
    ...pemFile,
  }),
  tlsKey: optional('PETSTORE_TLS_KEY', '--tls-key <file>', 'plain HTTP', {
    help: "File with the certificate's key (PEM)",
    ...pemFile,
  }),
  logLevel: setting('PETSTORE_LOG_LEVEL', '--log-level <level>', 'info', {
    help: `${oneOfText(logLevels)}; info logs every request`,
    ...oneOf(logLevels),
  }),
}

export const storeOptions = { databaseUrl: settings.databaseUrl, pooler: settings.databasePooler }

/** Opens the store, does the work and closes the store. Reports a new store: a wrong address would create one, too. */
export async function withStores<T>(
  { databaseUrl, ...options }: { databaseUrl: string; pooler: boolean; create: boolean },
  io: Io,
  work: (stores: Stores) => Promise<T>,
): Promise<T> {
  const stores = await openStores(databaseUrl, options)
  try {
    if (stores.newStorePath !== undefined) io.err(`Created a new store at ${stores.newStorePath}\n`)
    return await work(stores)
  } finally {
    await stores.close()
  }
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

const variablePrefix = 'PETSTORE_'
/** Read by other commands only. */
export const otherVariables = ['PETSTORE_URL']
/** With its value. Set by bin/petstore, tests, or Kubernetes for Services such as `petstore` and `petstore-db`. */
const foreignVariable = /^PETSTORE_(PROGRAM=|TEST_|(\w+_)?(SERVICE_|PORT_\d+_|PORT=(tcp|udp|sctp):))/

/** A warning for each variable that looks like a setting and is none: it is probably mistyped. */
export function unknownVariables(env: Io['env'], program: string): readonly string[] {
  const known = [...Object.values(settings).map(({ variable }) => variable), ...otherVariables]
  const isUnknown = (name: string) => name.startsWith(variablePrefix) && !known.includes(name)
  return Object.entries(env).flatMap(([name, value]) => {
    if (!value || !isUnknown(name) || foreignVariable.test(`${name}=${value}`)) return []
    const bare = name.slice(variablePrefix.length)
    const meant = known.includes(bare) ? bare : findSimilar(name, known)
    return `Unknown variable ${name}: ${meant ? `did you mean ${meant}?` : `${program} serve --help lists the variables`}`
  })
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
