/** One database: a server, or a proxy or a pooler in front of it. */
export interface PostgresAddress {
  /** Name and port, for people. */
  readonly host: string
  /** For people: without user and password. */
  readonly location: string
  /** For the driver: without the options that it does not know. */
  readonly url: string
  readonly applicationName: string
  /** How long opening a connection may take. */
  readonly connectSecondsMax: number
  /** Whether it is a connection pooler, which may run each transaction in another session. */
  readonly pooled: boolean
}

const schemeForm = /^postgres(?:ql)?:\/\//
const form =
  /^(?:(?<credentials>[^\s/?#@]*)@)?(?<host>\[[^\s/?#@\]]*\]|[^\s/?#@:]*)(?::(?<port>[^\s/?#@]*))?(?:\/(?<database>[^\s?#]*))?(?:\?(?<options>[^\s#]*))?$/
const hostForm = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)$/
const example = 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'
const portDefault = '5432'
const connectSecondsDefault = 2

const optionForms: Readonly<Record<string, { readonly valid: RegExp; readonly expected: string }>> = {
  sslmode: {
    valid: /^(disable|prefer|require|verify-ca|verify-full)$/,
    expected: 'disable, prefer, require, verify-ca or verify-full',
  },
  application_name: { valid: /^[\x20-\x7e]{1,63}$/, expected: '1 to 63 visible ASCII characters' },
  connect_timeout: { valid: /^[1-5]$/, expected: 'seconds from 1 to 5' },
}

/** What is wrong with the address. Never shows a value, which may be part of a password, except that of sslmode. */
export function postgresUrlProblem(url: string): string | undefined {
  const rest = url.replace(schemeForm, '')
  if (rest === url || rest === '' || /\s/.test(url)) return `expected ${example}`
  // Unescaped, a part of the password looks like a host or an option.
  if (/#|%00|[/?@].*@/.test(rest) || !isDecodable(rest)) {
    return 'write @ / ? # and % in the user or the password as %40 %2F %3F %23 and %25'
  }
  const { host = '', port = portDefault, database = '', options } = form.exec(rest)?.groups ?? {}
  if (/^[^/?]*,/.test(rest.replace(/^[^@]*@/, ''))) {
    return 'it names several hosts: name one, a proxy that finds the primary or the address of the cluster'
  }
  if (!hostForm.test(host) || !URL.canParse(`postgres://${host}`))
    return `the host is missing or invalid: expected ${example}`
  if (!/^[1-9]\d*$/.test(port) || Number(port) > 65_535) return 'the port is invalid: expected 1 to 65535'
  if (database === '' || /[/]|^(\.|%2e){1,2}$/i.test(database))
    return `the database is missing or invalid: expected ${example}`
  return optionProblem([...new URLSearchParams(options)])
}

function optionProblem(options: readonly (readonly [name: string, value: string])[]): string | undefined {
  for (const [index, [name, value]] of options.entries()) {
    const known = Object.hasOwn(optionForms, name) ? optionForms[name] : undefined
    if (!known) {
      const shown = /^[a-z_]{1,40}$/.test(name) ? `the option ${name}` : 'an option'
      return `${shown} is not supported: expected ${Object.keys(optionForms).join(', ')}`
    }
    if (options.findIndex(([other]) => other === name) < index) return `the option ${name} is given twice`
    const shown = /^sslmode=[\w-]{0,20}$/.test(`${name}=${value}`) ? `sslmode=${value}` : `the value of ${name}`
    if (!known.valid.test(value)) return `${shown} is not supported: expected ${known.expected}`
  }
  return undefined
}

/** Parses an address without a {@link postgresUrlProblem}. */
export function parsePostgresUrl(url: string, pooled = false): PostgresAddress {
  const { credentials, host, port, database, options } = form.exec(url.replace(schemeForm, ''))?.groups ?? {}
  const given = new URLSearchParams(options)
  const sslMode = given.get('sslmode')
  const named = `${host}:${port ?? portDefault}`
  const user = credentials === undefined ? '' : `${credentials}@`
  return {
    host: named,
    location: `postgres://${named}/${database}`,
    url: `postgres://${user}${named}/${database}${sslMode === null ? '' : `?sslmode=${sslMode}`}`,
    applicationName: given.get('application_name') ?? 'petstore',
    connectSecondsMax: Number(given.get('connect_timeout') ?? connectSecondsDefault),
    pooled,
  }
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
