import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { show } from '../field.ts'
import { flagName, type Option, readValues } from './arguments.ts'
import { checkSettings, otherVariables, settings, unknownVariables } from './settings.ts'

type Name = keyof typeof settings
type Given = Readonly<Record<string, string>>

const read = (flags: Given, env: Given) => readValues({ options: settings, check: checkSettings }, flags, env)
const readSettings = (flags: Given, env: Given) => read(flags, env).values
const listProblems = (flags: Given, env: Given) => read(flags, env).problems

test('the defaults apply to settings that are not set or empty', () => {
  const empty = Object.fromEntries(Object.values(settings).map(({ variable }) => [variable, '']))
  for (const env of [{}, empty, { PORTS: 'x', port: 'x', API_KEY: 'x' }]) {
    expect<unknown>(readSettings({}, env)).toEqual({
      ...{ port: 8080, host: '127.0.0.1', reusePort: false, logLevel: 'info', drainMs: 10_000 },
      ...{ databaseUrl: 'sqlite:data/petstore.db', databasePooler: false, databasePool: 10, waitForDatabaseMs: 0 },
    })
  }
})

const visibleCharacters = String.fromCharCode(...Array.from({ length: 94 }, (_, i) => 0x21 + i))
const [url, pets] = ['https://example.com', 'https://pets.example.com']
const sameText = (...texts: string[]) => Object.fromEntries(texts.map(text => [text, text]))

/** Valid texts and their values. */
const valid: Readonly<Record<Name, Readonly<Record<string, unknown>>>> = {
  port: { '0': 0, '65535': 65_535 },
  host: { '[::1]': '::1', ...sameText('0.0.0.0', 'pets-1.example.com', '::') },
  reusePort: { true: true, false: false },
  databaseUrl: sameText('postgres://db.example.com/pets'),
  readUrl: sameText('postgresql://a:6543/pets'),
  databasePooler: { true: true, false: false },
  databasePool: { '1': 1, '1000': 1_000 },
  waitForDatabaseMs: { '30s': 30_000, '0ms': 0, '300s': 300_000, '300000ms': 300_000 },
  environmentKey: sameText('key-of-16-chars!', 'x'.repeat(1_000), visibleCharacters),
  publicUrl: {
    ...Object.fromEntries(['', '/v1', '/v1//', '/'].map(path => [`${pets}${path}`, `${pets}/v1`])),
    ...{ 'HTTPS://Pets.Example.COM/v1': `${pets}/v1`, 'http://[::1]:8080/v1': 'http://[::1]:8080/v1' },
    ...{ 'http://localhost:8080': 'http://localhost:8080/v1', [`${url}:443/shop`]: `${url}/shop/v1` },
    ...Object.fromEntries(['/shopv1', '/v1/shop', '/v10'].map(path => [`${url}${path}`, `${url}${path}/v1`])),
  },
  stagingUrl: { 'https://täst.example': 'https://xn--tst-qla.example/v1' },
  rateLimit: {
    ...{ '600/m': { requests: 600, seconds: 60 }, '1/s': { requests: 1, seconds: 1 } },
    '999999999/h': { requests: 999_999_999, seconds: 3_600 },
  },
  drainMs: { '250ms': 250 },
  corsOrigins: { 'https://a.example, http://b:3000': ['https://a.example', 'http://b:3000'] },
  trustedProxies: { '10.1.2.3/8, ::1': ['10.1.2.3/8', '::1'] },
  tlsCert: sameText('package.json'),
  tlsKey: sameText('README.md'),
  logLevel: sameText('info', 'warn', 'error'),
}
/** What some settings need of others. */
const others = { DATABASE_URL: 'postgres://db/pets', PETSTORE_TLS_CERT: 'LICENSE', PETSTORE_TLS_KEY: 'LICENSE' }

describe.each(Object.keys(valid) as Name[])('%s, as a variable or a flag, which takes precedence:', name => {
  test.each(Object.entries(valid[name]))('%s is read as %p', (text, value) => {
    const { variable } = settings[name]
    expect<unknown>(readSettings({}, { ...others, [variable]: text })[name]).toEqual(value)
    const flags = { [flagName(settings[name])]: text }
    expect<unknown>(readSettings(flags, { ...others, [variable]: 'in valid' })[name]).toEqual(value)
  })
})

const time = 'a time from 0s to 300s, such as 500ms or 30s'
const rate = 'requests per second, minute or hour, such as 100/s, 600/m or 5000/h'
const origins = 'origins separated by commas, such as https://shop.example.com,http://localhost:3000'
const addresses = 'IP addresses and CIDR ranges separated by commas, such as 127.0.0.1,10.0.0.0/8,fd00::/8'
const baseUrl = 'an http or https URL without user, query or fragment, such as https://pets.example.com/v1'
const notUrls = [
  ' |pets.example.com/v1|/v1|//pets.example.com/v1|https://|https://a b/v1|https://a:99999/v1|file:///v1',
  'ftp://pets.example.com/v1|javascript:alert(1)|https://a.example/v1?a=b|https://a.example/v1#a',
  'http://x/"><script>|https://a.example/a>b|https://a.example/%zz|https://a.example/[a]',
  'https://a.example/a\\b/v1|https://a.example/{v}/v1|https://a.example/v1\n',
]

test.each<[Name, string, string]>([
  ['port', 'an integer from 0 to 65535', '65536|99999|100000|-1|+1|1.0|1e3|0x50| 80|80 |http|８０'],
  ['host', 'a host name or an IP address', ' |a b|http://localhost|localhost/|[]|[::1|a,b|höst|*'],
  ['reusePort', 'true or false', 'yes|1|TRUE| true'],
  ['databasePool', 'an integer from 1 to 1000', '0|1001|10000|-1|+1|1.5|1e2|0x10| 1|1 |many|１'],
  ['waitForDatabaseMs', time, '301s|300001ms|30|-1s|1.5s|1m|s|30 s| 30s|30S|forever'],
  ['drainMs', time, '301s|10'],
  ['publicUrl', baseUrl, notUrls.join('|')],
  ['stagingUrl', baseUrl, 'staging'],
  ['rateLimit', rate, '0/s|-1/s|1.5/s|100|100/d|/s|100/ s|1e3/s|1000000000/s'],
  ['corsOrigins', origins, '*|https://a.example/|a.example|https://a.example,|null|https://a.example/b|file:///x'],
  ['trustedProxies', addresses, 'localhost|10.0.0.0/33|10.0.0.1,|10.0.0.1;10.0.0.2|fd00::/129|*|10.0.0.1:80'],
  ['logLevel', 'info, warn or error', 'INFO|debug|silent|1'],
])('%s: expected %s, not %j', (name, expected, refused) => {
  const { variable } = settings[name]
  const flag = flagName(settings[name])
  for (const text of refused.split('|')) {
    const problem = `is ${show(text)}: expected ${expected}`
    expect(listProblems({}, { [variable]: text })).toEqual([`${variable} ${problem}`])
    expect(listProblems({ [flag]: text }, {})).toEqual([`${flag} ${problem}`])
  }
  expect(listProblems({ [flag]: '' }, {})).toEqual([`${flag} is "": expected ${expected}`])
})

const notKeys = [
  'hunter2-123456x|hunter2-123456789 hunter2|hunter2-1234567890\n|\thunter2-1234567890',
  'hunter2-1234567890-é|hunter2-1234567890-\u007f',
]
const notPostgres =
  'replica.example.com|sqlite:hunter2.db|mysql://me:hunter2@replica/pets|postgresfoo://hunter2@replica/pets| '

test.each<[Name, string, string]>([
  ['environmentKey', 'is invalid (', notKeys.join('|')],
  ['databaseUrl', 'is invalid: expected ', 'mysql://me:hunter2@db/pets'],
  ['databaseUrl', 'is invalid: sslmode=maybe is not ', 'postgres://me:hunter2@db/pets?sslmode=maybe'],
  ['readUrl', 'is invalid: expected ', notPostgres],
  ['readUrl', 'is invalid: it names several hosts', 'postgres://me:hunter2@one,two/pets'],
  // A database URL given as another setting, and a base URL with a password.
  ['publicUrl', 'is "postgres://…@h', 'postgres://u:hunter2@hunter2@h/x'],
  ['port', 'is "postgres://…@h', 'postgres://u:hunter2/hunter2@h'],
  ['host', 'is "postgres://…@h', 'postgres://u:hunter2?c@hunter2#s3@h/x'],
  ['logLevel', 'is "postgres://…@h', 'postgres://u:hunter2\nhunter2@h/x'],
  ['publicUrl', 'is "https://…@a', 'https://hunter2@a.example/v1|https://:hunter2@a.example/v1'],
])('%s %s…: a password or key is not shown', (name, problem, refused) => {
  const { variable } = settings[name]
  const flag = flagName(settings[name])
  for (const text of refused.split('|')) {
    const problems = [...listProblems({}, { ...others, [variable]: text }), ...listProblems({ [flag]: text }, others)]
    const starts = [`${variable} ${problem}`, `${flag} ${problem}`]
    expect(problems).toEqual(starts.map(start => expect.stringContaining(start)))
    expect(problems.join()).not.toContain('hunter2')
  }
})

test('settings that contradict each other are refused', () => {
  expect(listProblems({ '--read-url': 'postgres://replica/pets' }, {})).toEqual([
    expect.stringContaining('--read-url needs a PostgreSQL store'),
  ])
  for (const flag of ['--tls-cert', '--tls-key']) {
    expect(listProblems({ [flag]: 'package.json' }, {})).toEqual(['--tls-cert and --tls-key: set both or neither'])
  }
  expect(listProblems({ '--tls-cert': 'nowhere.pem', '--tls-key': 'package.json' }, {})).toEqual([
    '--tls-cert is "nowhere.pem": expected a file that exists',
  ])
})

describe('an unknown variable', () => {
  const warnings = (env: Record<string, string>) => unknownVariables(env, 'petstore')

  test.each([
    ['PETSTORE_LOGLEVEL', 'warn', 'did you mean PETSTORE_LOG_LEVEL?'],
    ['PETSTORE_PORT', '9100', 'did you mean PORT?'],
    ['PETSTORE_DATABASE_URL', 'sqlite:pets.db', 'did you mean DATABASE_URL?'],
    ['PETSTORE_APIKEY', 'secret', 'did you mean PETSTORE_API_KEY?'],
    ['PETSTORE_ULR', 'http://a', 'did you mean PETSTORE_URL?'],
    ['PETSTORE_COLOUR', 'red', 'petstore serve --help lists the variables'],
    ['PETSTORE_FOO', 'x', 'petstore serve --help lists the variables'],
    ['PETSTORE_DATABASE_HOST', 'x', 'petstore serve --help lists the variables'],
    ['PETSTORE_DB_PORT', '5432', 'petstore serve --help lists the variables'],
  ])('%s=%s gets a warning: %s', (name, value, advice) => {
    expect(warnings({ [name]: value })).toEqual([`Unknown variable ${name}: ${advice}`])
  })

  test.each([
    ...['PETSTORE_SERVICE_HOST=10.0.0.1', 'PETSTORE_SERVICE_PORT=80', 'PETSTORE_SERVICE_PORT_HTTP=80'],
    ...['PETSTORE_PORT=tcp://10.0.0.1:80', 'PETSTORE_PORT_80_TCP=tcp://10.0.0.1:80'],
    ...['PETSTORE_PORT_80_TCP_ADDR=10.0.0.1', 'PETSTORE_DB_SERVICE_HOST=10.0.0.2'],
    ...['PETSTORE_DB_PORT=tcp://10.0.0.2:5432', 'PETSTORE_DB_PORT_5432_TCP_PORT=5432'],
    ...['PETSTORE_PROGRAM=bin/petstore', 'PETSTORE_TEST_STORE=postgres', 'PETSTORE_LOGLEVEL=', 'MY_PETSTORE_KEY=x'],
    ...[...Object.values(settings).map(({ variable }) => variable), ...otherVariables].map(name => `${name}=x`),
  ])('%s gets none', variable => {
    const [name = '', value = ''] = variable.split('=')
    expect(warnings({ [name]: value })).toEqual([])
  })
})

/** The table of settings in docs/operating.md. */
function settingsTable(): string {
  const rows = Object.values<Option>(settings).map(setting => {
    const { variable, default: fallback, optional, help } = setting
    return `| \`${variable}\` | \`${flagName(setting)}\` | ${optional ? fallback : `\`${fallback}\``} | ${help} |`
  })
  return ['| Variable | Flag | Default | Meaning |', '|---|---|---|---|', ...rows].join('\n')
}

test('docs/operating.md has the table of settings', () => {
  const file = new URL('../../docs/operating.md', import.meta.url)
  const text = readFileSync(file, 'utf8')
  const expected = text.replace(/(?<=<!-- settings -->\n).*(?=\n<!-- \/settings -->)/s, settingsTable)
  expect(text).toContain('<!-- settings -->')
  if (process.env['UPDATE_DOCS']) writeFileSync(file, expected)
  else if (text !== expected) {
    throw new Error('The table is out of date. Update it with: UPDATE_DOCS=1 npx bun test src/cli/settings.test.ts')
  }
})
