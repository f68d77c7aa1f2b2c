import { existsSync } from 'node:fs'
import { invalid } from '../field.ts'
import { type LogLevel, logLevels } from '../log.ts'
import { databaseUrlProblem } from '../store/open.ts'
import { Misuse } from './io.ts'
import {
  baseAddressForm,
  baseAddressOf,
  databasePoolMax,
  databasePoolOf,
  hostOf,
  logLevelOf,
  originsForm,
  originsOf,
  portOf,
  rateLimitOf,
  switchOf,
  timeForm,
  timeOf,
} from './setting-forms.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** What the flags of a command gave, by the name that commander makes of them; `true` for a switch. */
export type Flags = Readonly<Record<string, string | true | undefined>>

export interface ServeSettings {
  readonly port: number
  readonly host: string
  /** Whether several instances may share the port. */
  readonly reusePort: boolean
  readonly databaseUrl: string
  /** Where animals are listed and fetched from, if not where they are written. */
  readonly readUrl?: string
  /** Connections to PostgreSQL for reading. */
  readonly databasePool?: number
  /** How long a start goes on trying to reach the database. */
  readonly waitForDatabaseMs: number
  readonly environmentKey?: string
  readonly publicUrl?: string
  readonly stagingUrl?: string
  /** Requests of one key in so many seconds; absent where there is no limit. */
  readonly rateLimit?: { readonly requests: number; readonly seconds: number }
  /** Origins whose pages may use the interface. */
  readonly corsOrigins?: readonly string[]
  readonly tls?: { readonly cert: string; readonly key: string }
  readonly logLevel: LogLevel
  /** How long a stop waits for requests that are under way. */
  readonly drainMs: number
}

/** A setting has one name in two spellings: a variable, and a flag that wins over it. */
export interface Setting {
  readonly variable: string
  readonly flag: string
  /** Absent for a switch: its flag takes no value, and its variable is `true` or `false`. */
  readonly placeholder?: string
  readonly help: string
}

export const settings = {
  port: {
    variable: 'PORT',
    flag: 'port',
    placeholder: 'number',
    help: 'port to listen on, 0 for any free one (default 8080)',
  },
  host: {
    variable: 'HOST',
    flag: 'host',
    placeholder: 'address',
    help: 'address to listen on (default 127.0.0.1)',
  },
  reusePort: {
    variable: 'PETSTORE_REUSE_PORT',
    flag: 'reuse-port',
    help: 'share the port with other instances of the same store (Linux; default: a taken port is refused)',
  },
  databaseUrl: {
    variable: 'DATABASE_URL',
    flag: 'database-url',
    placeholder: 'url',
    help: 'the store: sqlite:FILE, or postgres://USER:PASSWORD@HOST/DATABASE (default sqlite:data/petstore.db)',
  },
  readUrl: {
    variable: 'PETSTORE_READ_URL',
    flag: 'read-url',
    placeholder: 'url',
    help: 'PostgreSQL only: list and fetch from these replicas, a little behind (default: from the store itself)',
  },
  databasePool: {
    variable: 'PETSTORE_DATABASE_POOL',
    flag: 'database-pool',
    placeholder: 'number',
    help: `PostgreSQL only: connections for reading, 1 to ${databasePoolMax} (default 10; 2 more for writing)`,
  },
  waitForDatabase: {
    variable: 'PETSTORE_WAIT_FOR_DATABASE',
    flag: 'wait-for-database',
    placeholder: 'time',
    help: 'how long to try again when the database cannot be reached at the start, such as 30s (default 0s)',
  },
  apiKey: {
    variable: 'PETSTORE_API_KEY',
    flag: 'api-key',
    placeholder: 'key',
    help: 'a key to accept beside those in the store; the process list shows a flag, so prefer the variable',
  },
  publicUrl: {
    variable: 'PETSTORE_PUBLIC_URL',
    flag: 'public-url',
    placeholder: 'url',
    help: 'base address as clients see it, for links (default: links are relative)',
  },
  stagingUrl: {
    variable: 'PETSTORE_STAGING_URL',
    flag: 'staging-url',
    placeholder: 'url',
    help: 'base address of the staging deployment, for the OpenAPI document',
  },
  rateLimit: {
    variable: 'PETSTORE_RATE_LIMIT',
    flag: 'rate-limit',
    placeholder: 'rate',
    help: 'requests of one key on this instance, such as 100/s, 600/m or 5000/h (default: no limit)',
  },
  drainTime: {
    variable: 'PETSTORE_DRAIN_TIME',
    flag: 'drain-time',
    placeholder: 'time',
    help: 'how long a stop waits for requests under way, such as 500ms or 30s (default 10s)',
  },
  corsOrigins: {
    variable: 'PETSTORE_CORS_ORIGINS',
    flag: 'cors-origins',
    placeholder: 'origins',
    help: 'origins whose pages may use the interface, with commas between them (default: none)',
  },
  tlsCert: {
    variable: 'PETSTORE_TLS_CERT',
    flag: 'tls-cert',
    placeholder: 'file',
    help: 'certificate in PEM; with --tls-key the server speaks HTTPS',
  },
  tlsKey: {
    variable: 'PETSTORE_TLS_KEY',
    flag: 'tls-key',
    placeholder: 'file',
    help: "the certificate's key in PEM",
  },
  logLevel: {
    variable: 'PETSTORE_LOG_LEVEL',
    flag: 'log-level',
    placeholder: 'level',
    help: `${logLevels.join(', ')} (default info: a line for each request)`,
  },
} as const satisfies Record<string, Setting>

const environmentKeyCharsMin = 16

/** Reads every setting of `serve`, and reports all mistakes together. */
export function readServeSettings(flags: Flags, env: Env): ServeSettings {
  const reader = createReader(flags, env)
  const port = reader.read('port', portOf, 'a whole number from 0 to 65535') ?? 8080
  const host = reader.read('host', hostOf, 'a host name or an IP address') ?? '127.0.0.1'
  const reusePort = readReusePort(reader)
  const databaseUrl = readDatabaseUrl(reader)
  const readUrl = readReadUrl(reader, databaseUrl)
  const databasePool = reader.read(
    'databasePool',
    databasePoolOf,
    `a whole number from 1 to ${databasePoolMax}`,
  )
  const waitForDatabaseMs = reader.read('waitForDatabase', timeOf, timeForm) ?? 0
  const environmentKey = readEnvironmentKey(reader)
  const publicUrl = reader.read('publicUrl', baseAddressOf, baseAddressForm)
  const stagingUrl = reader.read('stagingUrl', baseAddressOf, baseAddressForm)
  const rateLimit = reader.read(
    'rateLimit',
    rateLimitOf,
    'requests per second, minute or hour, such as 100/s or 600/m',
  )
  const drainMs = reader.read('drainTime', timeOf, timeForm) ?? 10_000
  const corsOrigins = reader.read('corsOrigins', originsOf, originsForm)
  const tls = readTls(reader)
  const logLevel = reader.read('logLevel', logLevelOf, `one of ${logLevels.join(', ')}`) ?? 'info'
  reader.finish()
  return {
    drainMs,
    logLevel,
    ...(corsOrigins && { corsOrigins }),
    ...(tls && { tls }),
    ...(rateLimit && { rateLimit }),
    port,
    host,
    reusePort,
    databaseUrl,
    ...(readUrl !== undefined && { readUrl }),
    ...(databasePool !== undefined && { databasePool }),
    waitForDatabaseMs,
    ...(environmentKey !== undefined && { environmentKey }),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(stagingUrl !== undefined && { stagingUrl }),
  }
}

/** The one setting of the commands that work on the store itself. */
export function readStoreSettings(flags: Flags, env: Env): string {
  const reader = createReader(flags, env)
  const databaseUrl = readDatabaseUrl(reader)
  reader.finish()
  return databaseUrl
}

type SettingName = keyof typeof settings

interface Reader {
  /** What was given, and how it was called; undefined where nothing was. An empty variable counts as not set. */
  given(name: SettingName): { readonly value: string; readonly label: string } | undefined
  read<T>(name: SettingName, parse: (text: string) => T | undefined, expected: string): T | undefined
  problem(text: string): void
  /** Throws where there was any problem. */
  finish(): void
}

function createReader(flags: Flags, env: Env): Reader {
  const problems: string[] = []
  const reader: Reader = {
    given(name) {
      const { variable, flag } = settings[name]
      const flagged = flags[name]
      // A switch has no value of its own.
      if (flagged !== undefined) return { value: String(flagged), label: `--${flag}` }
      const value = env[variable]
      return value ? { value, label: variable } : undefined
    },
    read(name, parse, expected) {
      const given = reader.given(name)
      if (!given) return undefined
      const value = parse(given.value)
      if (value === undefined) problems.push(invalid(given.label, withoutPassword(given.value), { expected }))
      return value
    },
    problem: text => problems.push(text),
    finish() {
      if (problems.length > 0) throw new Misuse(problems)
    },
  }
  return reader
}

function readReusePort(reader: Reader): boolean {
  const wanted = reader.read('reusePort', switchOf, 'true or false') ?? false
  if (wanted && process.platform !== 'linux') {
    reader.problem(
      'Cannot share the port: --reuse-port works on Linux only; put a proxy in front of several instances',
    )
  }
  return wanted
}

function readDatabaseUrl(reader: Reader): string {
  const given = reader.given('databaseUrl')
  if (!given) return 'sqlite:data/petstore.db'
  const problem = databaseUrlProblem(given.value)
  if (problem) reader.problem(`Cannot read ${given.label}: ${problem}`)
  return given.value
}

/** Replicas of another database would show another catalogue; that they are of this one cannot be told from here. */
function readReadUrl(reader: Reader, databaseUrl: string): string | undefined {
  const given = reader.given('readUrl')
  if (!given) return undefined
  const isPostgres = (url: string) => /^postgres(ql)?:/.test(url)
  if (!isPostgres(databaseUrl))
    reader.problem(`Cannot use ${given.label}: the store is a file, and has no replicas`)
  const problem = isPostgres(given.value)
    ? databaseUrlProblem(given.value)
    : 'expected the replicas of a PostgreSQL store, such as postgres://USER:PASSWORD@HOST:PORT/DATABASE'
  if (problem) reader.problem(`Cannot read ${given.label}: ${problem}`)
  return given.value
}

/** A secret: what is wrong with it is said without showing it. */
function readEnvironmentKey(reader: Reader): string | undefined {
  const given = reader.given('apiKey')
  if (!given) return undefined
  const { value, label } = given
  if (value.length < environmentKeyCharsMin || !/^[\x21-\x7e]*$/.test(value)) {
    reader.problem(
      `Cannot use ${label} (${value.length} characters): expected at least ${environmentKeyCharsMin}, all of them visible ASCII; bin/petstore keys create makes a good one`,
    )
  }
  return value
}

/** One without the other serves nobody. */
function readTls(reader: Reader): ServeSettings['tls'] {
  const [cert, key] = [reader.given('tlsCert'), reader.given('tlsKey')]
  for (const given of [cert, key]) {
    if (given && !existsSync(given.value))
      reader.problem(`Cannot read ${given.label}: there is no file ${given.value}`)
  }
  if (cert && key) return { cert: cert.value, key: key.value }
  if (cert || key) reader.problem('--tls-cert and --tls-key go together: expected both or neither')
  return undefined
}

/** An address in a message shows who, where and what, but not the secret in front of the @. */
function withoutPassword(text: string): string {
  return text.replace(/\/\/.*@/s, '//…@')
}
