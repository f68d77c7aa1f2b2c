/** One database, on one host or on several (a primary and its standbys). */
export interface PostgresAddress {
  readonly hosts: readonly PostgresHost[]
  /** For people: without user and password. */
  readonly location: string
}

export interface PostgresHost {
  readonly name: string
  /** For the driver, with user and password. */
  readonly url: string
  /** Whether it is a connection pooler, which may run each transaction in another session. */
  readonly pooled: boolean
}

const form =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^\s/?#@:]*)(?::(?<password>[^\s/?#@]*))?@)?(?<hosts>[^\s/?#@]+)\/(?<database>[^\s/?#]+)(?:\?(?<options>[^#]*))?$/
const hostForm = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[1-9]\d{0,4})?$/
const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full']
const portDefault = 5432

export const postgresUrlExpected =
  'expected postgres://USER:PASSWORD@HOST:PORT/DATABASE, with further hosts after commas, sslmode as the only option, and @ / ? # % in a password written as %40 %2F %3F %23 %25'

/** Undefined if the URL is invalid. */
export function parsePostgresUrl(url: string, pooled = false): PostgresAddress | undefined {
  const { user, password, hosts = '', database = '', options = '' } = form.exec(url)?.groups ?? {}
  const hostList = hosts.split(',')
  // URL.canParse refuses ports above 65535 and invalid IPv6 addresses.
  const isHost = (name: string) => hostForm.test(name) && URL.canParse(`postgres://${name}`)
  const sslMode = sslModeOf(options)
  if (!hostList.every(isHost) || sslMode === undefined || !isDecodable(url)) return undefined
  const credentials = user === undefined ? '' : `${user}${password === undefined ? '' : `:${password}`}@`
  const names = hostList.map(host => (/:\d+$/.test(host) ? host : `${host}:${portDefault}`))
  return {
    hosts: names.map(name => ({ name, url: `postgres://${credentials}${name}/${database}${sslMode}`, pooled })),
    location: `postgres://${names.join(',')}/${database}`,
  }
}

/** The query for the driver, or undefined if an option is not supported. The pool itself looks for the primary. */
function sslModeOf(query: string): string | undefined {
  const options = new URLSearchParams(query)
  const sslMode = options.get('sslmode')
  const target = options.get('target_session_attrs')
  options.delete('sslmode')
  options.delete('target_session_attrs')
  if (options.size > 0 || !['read-write', 'primary', null].includes(target)) return undefined
  if (sslMode === null) return ''
  return sslModes.includes(sslMode) ? `?sslmode=${sslMode}` : undefined
}

function isDecodable(url: string): boolean {
  try {
    return decodeURIComponent(url) !== ''
  } catch {
    return false
  }
}
