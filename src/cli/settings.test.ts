import { expect, test } from 'bun:test'
import { readProjectFile } from '../../test/support/process.ts'
import { show } from '../field.ts'
import { readValues } from './arguments.ts'
import { label, type Option } from './command.ts'
import { checkSettings, settings } from './settings.ts'

type Name = keyof typeof settings
type Given = Readonly<Record<string, string>>

/** Flags and variables are read alike: src/cli/arguments.test.ts. */
const readVariables = (env: Given) =>
  readValues({ options: settings, check: checkSettings }, {}, { env, program: 'petstore' })
const listProblems = (env: Given) => readVariables(env).problems

test('the defaults apply to settings that are not set or empty', () => {
  const empty = Object.fromEntries(Object.values(settings).map(({ variable }) => [variable, '']))
  for (const env of [{}, empty, { PORTS: 'x', port: 'x', API_KEY: 'x' }]) {
    expect<unknown>(readVariables(env).values).toEqual({
      ...{ port: 8080, host: '127.0.0.1', reusePort: false, logLevel: 'info', drainMs: 10_000 },
      ...{ databaseUrl: 'sqlite:data/petstore.db', databasePooler: false, databasePool: 10, waitForDatabaseMs: 0 },
    })
  }
})

const [url, pets] = ['https://example.com', 'https://pets.example.com']
const sameText = (...texts: string[]) => Object.fromEntries(texts.map(text => [text, text]))
const rate = (requests: number, seconds: number) => ({ requests, seconds })

test.each<[Name, Record<string, unknown>]>([
  ['port', { '0': 0, '65535': 65_535 }],
  ['host', { '[::1]': '::1', ...sameText('0.0.0.0', 'pets-1.example.com', '::') }],
  ['databasePooler', { true: true, false: false }],
  ['databasePool', { '1': 1, '1000': 1_000 }],
  ['waitForDatabaseMs', { '30s': 30_000, '0ms': 0, '300s': 300_000, '300000ms': 300_000 }],
  ['publicUrl', Object.fromEntries(['', '/v1', '/v1//', '/'].map(path => [`${pets}${path}`, `${pets}/v1`]))],
  ['publicUrl', Object.fromEntries(['/shopv1', '/v1/shop', '/v10'].map(path => [url + path, `${url}${path}/v1`]))],
  ['stagingUrl', { 'https://täst.example': 'https://xn--tst-qla.example/v1', ...sameText('http://[::1]:8080/v1') }],
  ['rateLimit', { '600/m': rate(600, 60), '1/s': rate(1, 1), '999999999/h': rate(999_999_999, 3_600) }],
  ['corsOrigins', { 'https://a.example, http://b:3000': ['https://a.example', 'http://b:3000'] }],
  ['trustedProxies', { '10.1.2.3/8, ::1': ['10.1.2.3/8', '::1'] }],
])('%s: %j are read', (name, valid) => {
  // What some settings need of others.
  const others = { DATABASE_URL: 'postgres://db/pets', PETSTORE_TLS_CERT: 'LICENSE', PETSTORE_TLS_KEY: 'LICENSE' }
  for (const [text, value] of Object.entries(valid)) {
    const { values, problems } = readVariables({ ...others, [settings[name].variable]: text })
    expect<unknown>([values[name], problems]).toEqual([value, []])
  }
})

const notUrls = [
  ' |pets.example.com/v1|/v1|https://|https://a b/v1|https://a:99999/v1|ftp://pets.example.com/v1|javascript:alert(1)',
  'https://a.example/v1?a=b|https://a.example/v1#a|http://x/"><script>|https://a.example/%zz|https://a.example/{v}/v1',
]

test.each<[Name, string]>([
  ['port', '65536|99999|100000|-1|+1|1.0|1e3|0x50| 80|80 |http|８０'],
  ['host', ' |a b|http://localhost|localhost/|[]|[::1|a,b|höst|*'],
  ['databasePool', '0|1001'],
  ['waitForDatabaseMs', '301s|300001ms|30|-1s|1.5s|1m|s|30 s| 30s|30S|forever'],
  ['publicUrl', notUrls.join('|')],
  ['rateLimit', '0/s|-1/s|1.5/s|100|100/d|/s|100/ s|1e3/s|1000000000/s'],
  ['corsOrigins', '*|https://a.example/|a.example|https://a.example,|null|https://a.example/b|file:///x'],
  ['trustedProxies', 'localhost|10.0.0.0/33|10.0.0.1,|10.0.0.1;10.0.0.2|fd00::/129|*|10.0.0.1:80'],
  ['logLevel', 'INFO|debug|silent|1'],
])('%s: %j are refused', (name, refused) => {
  const { variable, expected } = settings[name]
  for (const text of refused.split('|')) {
    expect(listProblems({ [variable]: text })).toEqual([`${variable} is ${show(text)}: expected ${expected}`])
  }
})

const notKeys =
  'hunter2-123456x|hunter2-123456789 hunter2|hunter2-1234567890\n|hunter2-1234567890-é|hunter2-1234567890-\u007f'

test.each<[Name, string, string]>([
  ['environmentKey', 'is invalid (', notKeys],
  ['databaseUrl', 'is invalid: expected ', 'mysql://me:hunter2@db/pets'],
  ['readUrl', 'is invalid: expected ', 'sqlite:hunter2.db|mysql://me:hunter2@replica/pets| '],
  // A database URL given as another setting, and a base URL with a password.
  ['publicUrl', 'is "postgres://…@h', 'postgres://u:hunter2@hunter2@h/x'],
  ['port', 'is "postgres://…@h', 'postgres://u:hunter2/hunter2@h'],
  ['publicUrl', 'is "https://…@a', 'https://hunter2@a.example/v1|https://:hunter2@a.example/v1'],
])('%s %s…: a password or key is not shown', (name, problem, refused) => {
  const { variable } = settings[name]
  for (const text of refused.split('|')) {
    const problems = listProblems({ [variable]: text })
    expect(problems).toEqual([expect.stringContaining(`${variable} ${problem}`)])
    expect(problems.join()).not.toContain('hunter2')
  }
})

test.each<[Given, string]>([
  [{ PETSTORE_READ_URL: 'postgres://replica/pets' }, '--read-url needs a PostgreSQL store'],
  [{ PETSTORE_TLS_CERT: 'package.json' }, '--tls-cert and --tls-key: set both or neither'],
  // An empty certificate would mean plain HTTP.
  [{ PETSTORE_TLS_CERT: '/dev/null', PETSTORE_TLS_KEY: 'package.json' }, 'CERT is "/dev/null": expected a file'],
])('%j is refused', (env, problem) => {
  expect(listProblems(env)).toEqual([expect.stringContaining(problem)])
})

test('docs/operating.md has the table of settings', () => {
  const [, table = ''] =
    /<!-- settings -->\n(.*)\n<!-- \/settings -->/s.exec(readProjectFile('docs/operating.md')) ?? []
  const rows = Object.values<Option>(settings).map(setting => {
    const { variable, default: fallback, otherwise = `\`${fallback}\``, help } = setting
    return `| \`${variable}\` | \`${label(setting)}\` | ${otherwise} | ${help} |`
  })
  expect(table.split('\n').slice(2)).toEqual(rows)
})
