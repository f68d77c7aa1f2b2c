/** Where a PostgreSQL store is: one database, on one host or on several that stand in for one another. */
export interface PostgresAddress {
  /** An address for the driver, for each host, in the order given. */
  readonly hosts: readonly PostgresHost[]
  /** All of it for people: never who, nor the password. */
  readonly place: string
}

export interface PostgresHost {
  /** `db1.example.com:5432` */
  readonly name: string
  /** With user and password. */
  readonly url: string
}

const form =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^\s/?#@:]*)(?::(?<password>[^\s/?#@]*))?@)?(?<hosts>[^\s/?#@]+)\/(?<database>[^\s/?#]+)(?:\?(?<options>[^#]*))?$/
const hostForm = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[1-9]\d{0,4})?$/
const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full']
const portDefault = 5432

export const postgresUrlForm =
  'expected postgres://USER:PASSWORD@HOST:PORT/DATABASE, with more hosts after commas, no option but sslmode, and @ / # % in a password written as %40 %2F %23 %25'

/** Undefined where it is no such address. */
export function parsePostgresUrl(url: string): PostgresAddress | undefined {
  const { user, password, hosts = '', database = '', options = '' } = form.exec(url)?.groups ?? {}
  const names = hosts.split(',')
  const sslmode = sslModeOf(options)
  if (!names.every(isHost) || sslmode === undefined || !isDecodable(url)) return undefined
  const credential = user === undefined ? '' : `${user}${password === undefined ? '' : `:${password}`}@`
  const named = names.map(name => (/:\d+$/.test(name) ? name : `${name}:${portDefault}`))
  return {
    hosts: named.map(name => ({ name, url: `postgres://${credential}${name}/${database}${sslmode}` })),
    place: `postgres://${named.join(',')}/${database}`,
  }
}

/** Whether a port is too high, or an IPv6 address none, the driver's own reading of addresses knows. */
function isHost(name: string): boolean {
  return hostForm.test(name) && URL.canParse(`postgres://${name}`)
}

/** The one option that is handed on; which server takes writes is found out by asking, so that saying so changes nothing. */
function sslModeOf(options: string): string | undefined {
  const given = new URLSearchParams(options)
  const sslmode = given.get('sslmode')
  const target = given.get('target_session_attrs')
  given.delete('sslmode')
  given.delete('target_session_attrs')
  if (given.size > 0 || (target !== null && target !== 'read-write' && target !== 'primary')) return undefined
  if (sslmode === null) return ''
  return sslModes.includes(sslmode) ? `?sslmode=${sslmode}` : undefined
}

function isDecodable(url: string): boolean {
  try {
    return decodeURIComponent(url) !== ''
  } catch {
    return false
  }
}
