import { existsSync } from 'node:fs'
import { oneOf, oneOfText } from '../field.ts'
import { logLevels } from '../log.ts'
import { databaseUrlProblem, isPostgres } from '../store/open.ts'
import { flagName, type Option, switchOption, type Values } from './arguments.ts'

const environmentKeyCharsMin = 16
const time = { expected: 'a time from 0s to 300s, such as 500ms or 30s', read: readTimeMs }
const baseUrl = {
  optional: true,
  expected: 'an http or https URL without user, query or fragment, such as https://pets.example.com/v1',
  read: readPublicUrl,
} as const
const pemFile = {
  default: 'plain HTTP',
  optional: true,
  expected: 'a file that exists',
  read: (file: string) => (existsSync(file) ? file : undefined),
} as const

/** Every setting of `serve`, in the order of the help and the documentation. */
export const settings = {
  port: {
    variable: 'PORT',
    flag: '--port <number>',
    help: 'Port to listen on; 0 takes any free port',
    default: '8080',
    ...integer(0, 65_535),
  },
  host: {
    variable: 'HOST',
    flag: '--host <address>',
    help: 'Address to listen on: 0.0.0.0 for all IPv4 addresses, :: for all IPv6 addresses',
    default: '127.0.0.1',
    expected: 'a host name or an IP address',
    read: readHost,
  },
  reusePort: {
    ...switchOption('--reuse-port', 'Share the port with other instances of the same store (Linux only)'),
    variable: 'PETSTORE_REUSE_PORT',
  },
  databaseUrl: {
    variable: 'DATABASE_URL',
    flag: '--database-url <url>',
    help: 'The store: sqlite:FILE, or postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    default: 'sqlite:data/petstore.db',
    expected: 'sqlite:FILE or postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    read: url => (databaseUrlProblem(url) === undefined ? url : undefined),
    // It may contain a password.
    problem: url => `is invalid: ${databaseUrlProblem(url)}`,
  },
  readUrl: {
    variable: 'PETSTORE_READ_URL',
    flag: '--read-url <url>',
    help: 'PostgreSQL only: read animals from these replicas, which may lag behind',
    default: 'the store itself',
    optional: true,
    expected: 'postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    read: url => (isPostgres(url) && databaseUrlProblem(url) === undefined ? url : undefined),
    problem: url =>
      `is invalid: ${isPostgres(url) ? databaseUrlProblem(url) : 'expected postgres://USER:PASSWORD@HOST:PORT/DATABASE'}`,
  },
  databasePool: {
    variable: 'PETSTORE_DATABASE_POOL',
    flag: '--database-pool <number>',
    help: 'PostgreSQL only: connections for reads, 1 to 1000; 2 more are for writes',
    default: '10',
    ...integer(1, 1_000),
  },
  waitForDatabaseMs: {
    ...time,
    variable: 'PETSTORE_WAIT_FOR_DATABASE',
    flag: '--wait-for-database <time>',
    help: 'How long to retry at the start if the database does not answer, such as 30s; at most 300s',
    default: '0s',
  },
  environmentKey: {
    variable: 'PETSTORE_API_KEY',
    flag: '--api-key <key>',
    help: `An API key to accept besides those in the store, at least ${environmentKeyCharsMin} characters. Prefer the variable: other users can see flags in the process list`,
    default: 'none',
    optional: true,
    expected: 'visible ASCII characters',
    read: key => (new RegExp(`^[\\x21-\\x7e]{${environmentKeyCharsMin},}$`).test(key) ? key : undefined),
    problem: key =>
      `is invalid (${key.length} characters): expected at least ${environmentKeyCharsMin} visible ASCII characters`,
  },
  publicUrl: {
    ...baseUrl,
    variable: 'PETSTORE_PUBLIC_URL',
    flag: '--public-url <url>',
    help: 'Base URL as clients see it, for links and the OpenAPI document; /v1 is added if it is missing',
    default: 'relative links',
  },
  stagingUrl: {
    ...baseUrl,
    variable: 'PETSTORE_STAGING_URL',
    flag: '--staging-url <url>',
    help: 'Base URL of the staging deployment, for the OpenAPI document',
    default: 'none',
  },
  rateLimit: {
    variable: 'PETSTORE_RATE_LIMIT',
    flag: '--rate-limit <rate>',
    help: 'Requests that each key may send to this instance, such as 100/s, 600/m or 5000/h',
    default: 'no limit',
    optional: true,
    expected: 'requests per second, minute or hour, such as 100/s, 600/m or 5000/h',
    read: readRate,
  },
  drainMs: {
    ...time,
    variable: 'PETSTORE_DRAIN_TIME',
    flag: '--drain-time <time>',
    help: 'How long a stop waits for requests in progress, such as 500ms or 30s; at most 300s',
    default: '10s',
  },
  corsOrigins: {
    variable: 'PETSTORE_CORS_ORIGINS',
    flag: '--cors-origins <origins>',
    help: 'Origins whose pages may use the API from a browser, separated by commas',
    default: 'none',
    optional: true,
    expected: 'origins separated by commas, such as https://shop.example.com,http://localhost:3000',
    read: readOrigins,
  },
  tlsCert: {
    ...pemFile,
    variable: 'PETSTORE_TLS_CERT',
    flag: '--tls-cert <file>',
    help: 'Certificate file (PEM); with the key, the server speaks HTTPS',
  },
  tlsKey: {
    ...pemFile,
    variable: 'PETSTORE_TLS_KEY',
    flag: '--tls-key <file>',
    help: "File with the certificate's key (PEM)",
  },
  logLevel: {
    variable: 'PETSTORE_LOG_LEVEL',
    flag: '--log-level <level>',
    help: `${oneOfText(logLevels)}; info logs every request`,
    default: 'info',
    ...oneOf(logLevels),
  },
} as const satisfies Record<string, Option & { variable: string; default: string }>

export type ServeSettings = Values<typeof settings>

/** Problems of settings that contradict each other. */
export function checkSettings(
  { reusePort, readUrl, databaseUrl }: Partial<ServeSettings>,
  isGiven: (name: keyof ServeSettings) => boolean,
): readonly string[] {
  const problems: readonly [boolean | undefined, string][] = [
    [
      reusePort && process.platform !== 'linux',
      '--reuse-port works on Linux only: put a proxy in front of several instances',
    ],
    [
      readUrl !== undefined && databaseUrl !== undefined && !isPostgres(databaseUrl),
      '--read-url needs a PostgreSQL store: remove it, or set DATABASE_URL',
    ],
    [isGiven('tlsCert') !== isGiven('tlsKey'), '--tls-cert and --tls-key: set both or neither'],
  ]
  return problems.flatMap(([isProblem, text]) => (isProblem ? [text] : []))
}

function integer(min: number, max: number) {
  const read = (text: string) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    return value >= min && value <= max ? value : undefined
  }
  return { expected: `an integer from ${min} to ${max}`, read }
}

function readHost(text: string): string | undefined {
  const host = text.replace(/^\[(.*)\]$/, '$1')
  return /^[A-Za-z0-9._:-]+$/.test(host) ? host : undefined
}

function readTimeMs(text: string): number | undefined {
  const [, amount, unit] = /^(\d{1,6})(ms|s)$/.exec(text) ?? []
  const ms = Number(amount) * (unit === 's' ? 1_000 : 1)
  return ms <= 300_000 ? ms : undefined
}

function readRate(text: string): { readonly requests: number; readonly seconds: number } | undefined {
  const [, requests, unit] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? []
  return unit === undefined ? undefined : { requests: Number(requests), seconds: { s: 1, m: 60, h: 3_600 }[unit] ?? 0 }
}

function readOrigins(text: string): readonly string[] | undefined {
  const origins = text.split(',').map(origin => origin.trim())
  const isOrigin = (origin: string) => /^https?:/.test(origin) && URL.parse(origin)?.origin === origin
  return origins.every(isOrigin) ? origins : undefined
}

/** Stricter than the client's check: only RFC 3986 characters, because the URL goes into headers. */
const strictUrl = /^https?:\/\/(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d+)?(?:\/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?$/i

/** The interface's base addresses end in /v1: it is added if it is missing. */
function readPublicUrl(text: string): string | undefined {
  const url = strictUrl.test(text) ? URL.parse(text) : null
  return url ? `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/(?<!\/v1)$/, '/v1') : undefined
}

/** The table of settings in docs/operating.md. */
export function settingsTable(): string {
  const rows = Object.values<Option>(settings).map(setting => {
    const { variable, default: fallback, optional, help } = setting
    return `| \`${variable}\` | \`${flagName(setting)}\` | ${optional ? fallback : `\`${fallback}\``} | ${help} |`
  })
  return ['| Variable | Flag | Default | Meaning |', '|---|---|---|---|', ...rows].join('\n')
}
