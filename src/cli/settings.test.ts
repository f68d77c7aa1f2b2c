import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { flagName, type Option, readOptions } from './arguments.ts'
import { UsageError } from './output.ts'
import { checkSettings, settings } from './settings.ts'

type Given = Readonly<Record<string, string>>

function readSettings(flags: Given, env: Given) {
  return readOptions({ options: settings, check: checkSettings }, flags, env)
}

function problemsOf(flags: Given, env: Given): readonly string[] {
  try {
    readSettings(flags, env)
  } catch (error) {
    if (error instanceof UsageError) return error.problems
    throw error
  }
  return []
}

const defaults = {
  port: 8080,
  host: '127.0.0.1',
  reusePort: false,
  databaseUrl: 'sqlite:data/petstore.db',
  databasePool: 10,
  waitForDatabaseMs: 0,
  drainMs: 10_000,
  logLevel: 'info',
}

test('the defaults apply to settings that are not set or empty', () => {
  const empty = Object.fromEntries(Object.values(settings).map(({ variable }) => [variable, '']))
  for (const env of [{}, empty, { PORTS: 'x', port: 'x', API_KEY: 'x' }]) {
    expect<unknown>(readSettings({}, env)).toEqual(defaults)
  }
})

const visibleCharacters = String.fromCharCode(...Array.from({ length: 94 }, (_, i) => 0x21 + i))

/** Name, a valid text, its value, and another valid text. */
const valid: readonly (readonly [keyof typeof settings, string, unknown, string])[] = [
  ['port', '0', 0, '1'],
  ['host', '[::1]', '::1', 'b'],
  ['reusePort', 'true', true, 'false'],
  ['databaseUrl', 'postgres://db.example.com/pets', 'postgres://db.example.com/pets', 'postgres://b/pets'],
  ['readUrl', 'postgresql://a,b:6543/pets', 'postgresql://a,b:6543/pets', 'postgres://b/pets'],
  ['databasePool', '1000', 1_000, '1'],
  ['waitForDatabaseMs', '30s', 30_000, '1s'],
  ['environmentKey', 'key-of-16-chars!', 'key-of-16-chars!', 'another-key-of-23-chars'],
  ['publicUrl', 'https://pets.example.com', 'https://pets.example.com/v1', 'https://b.example/v1'],
  ['stagingUrl', 'https://staging.example.com', 'https://staging.example.com/v1', 'https://b.example/v1'],
  ['rateLimit', '600/m', { requests: 600, seconds: 60 }, '1/s'],
  ['drainMs', '250ms', 250, '1s'],
  ['corsOrigins', 'https://a.example, http://b:3000', ['https://a.example', 'http://b:3000'], 'https://b.example'],
  ['tlsCert', 'package.json', 'package.json', 'README.md'],
  ['tlsKey', 'package.json', 'package.json', 'README.md'],
  ['logLevel', 'warn', 'warn', 'debug'],
]
const values = Object.fromEntries(valid.map(([name, , value]) => [name, value]))
const texts = Object.fromEntries(valid.map(([name, text]) => [flagName(settings[name]), text]))
const variables = Object.fromEntries(valid.map(([name, text]) => [settings[name].variable, text]))
const otherVariables = Object.fromEntries(valid.map(([name, , , other]) => [settings[name].variable, other]))

test('every setting can be a variable or a flag, which takes precedence', () => {
  expect(valid.map(([name]) => name)).toEqual(Object.keys(settings) as (typeof valid)[number][0][])
  expect<unknown>(readSettings({}, variables)).toEqual(values)
  expect<unknown>(readSettings(texts, otherVariables)).toEqual(values)
  expect(readSettings({ '--port': '2' }, { PORT: 'invalid' }).port).toBe(2)
})

test.each<[keyof typeof settings, string, unknown]>([
  ['port', '65535', 65_535],
  ['host', '0.0.0.0', '0.0.0.0'],
  ['host', 'pets-1.example.com', 'pets-1.example.com'],
  ['host', '::', '::'],
  ['databasePool', '1', 1],
  ['waitForDatabaseMs', '0ms', 0],
  ['waitForDatabaseMs', '300s', 300_000],
  ['waitForDatabaseMs', '300000ms', 300_000],
  ['environmentKey', 'x'.repeat(1_000), 'x'.repeat(1_000)],
  ['environmentKey', visibleCharacters, visibleCharacters],
  ['rateLimit', '1/s', { requests: 1, seconds: 1 }],
  ['rateLimit', '999999999/h', { requests: 999_999_999, seconds: 3_600 }],
  ['logLevel', 'debug', 'debug'],
  ['logLevel', 'error', 'error'],
])('%s: %s is read as %p', (name, text, value) => {
  expect<unknown>(readSettings({}, { [settings[name].variable]: text })[name]).toEqual(value)
})

const time = 'a time from 0s to 300s, such as 500ms or 30s'
const rate = 'requests per second, minute or hour, such as 100/s, 600/m or 5000/h'
const origins = 'origins separated by commas, such as https://shop.example.com,http://localhost:3000'

describe.each<[keyof typeof settings, string, string]>([
  ['port', 'an integer from 0 to 65535', '65536|99999|100000|-1|+1|1.0|1e3|0x50| 80|80 |http|８０'],
  ['host', 'a host name or an IP address', ' |a b|http://localhost|localhost/|[]|[::1|a,b|höst|*'],
  ['reusePort', 'true or false', 'yes|1|TRUE| true'],
  ['databasePool', 'an integer from 1 to 1000', '0|1001|10000|-1|+1|1.5|1e2|0x10| 1|1 |many|１'],
  ['waitForDatabaseMs', time, '301s|300001ms|30|-1s|1.5s|1m|s|30 s| 30s|30S|forever'],
  ['drainMs', time, '301s|10'],
  ['rateLimit', rate, '0/s|-1/s|1.5/s|100|100/d|/s|100/ s|1e3/s|1000000000/s'],
  ['corsOrigins', origins, '*|https://a.example/|a.example|https://a.example,|null|https://a.example/b|file:///x'],
  ['logLevel', 'debug, info, warn or error', 'INFO|trace|silent|1'],
])('%s', (name, expected, refused) => {
  const { variable } = settings[name]
  const flag = flagName(settings[name])

  test.each(refused.split('|'))('%j is refused', text => {
    const problem = `is ${JSON.stringify(text)}: expected ${expected}`
    expect(problemsOf({}, { [variable]: text })).toEqual([`${variable} ${problem}`])
    expect(problemsOf({ [flag]: text }, variables)).toEqual([`${flag} ${problem}`])
  })

  test('an empty flag is refused', () => {
    expect(problemsOf({ [flag]: '' }, {})).toEqual([`${flag} is "": expected ${expected}`])
  })
})

describe('a public or staging URL', () => {
  test.each([
    ['https://pets.example.com/v1', 'https://pets.example.com/v1'],
    ['https://pets.example.com/v1//', 'https://pets.example.com/v1'],
    ['https://pets.example.com/', 'https://pets.example.com/v1'],
    ['http://localhost:8080', 'http://localhost:8080/v1'],
    ['https://example.com:443/shop', 'https://example.com/shop/v1'],
    ['https://example.com/shopv1', 'https://example.com/shopv1/v1'],
    ['https://example.com/v1/shop', 'https://example.com/v1/shop/v1'],
    ['https://example.com/v10', 'https://example.com/v10/v1'],
    ['http://[::1]:8080/v1', 'http://[::1]:8080/v1'],
    ['HTTPS://Pets.Example.COM/v1', 'https://pets.example.com/v1'],
  ])('%s is read as %s', (text, url) => {
    const read = readSettings({}, { PETSTORE_PUBLIC_URL: text, PETSTORE_STAGING_URL: text })
    expect([read.publicUrl, read.stagingUrl]).toEqual([url, url])
  })

  const refused = [
    ' ||pets.example.com/v1|/v1|//pets.example.com/v1|https://|https://a b/v1|https://a:99999/v1|file:///v1',
    'ftp://pets.example.com/v1|javascript:alert(1)|https://a.example/v1?a=b|https://a.example/v1#a',
    'https://somebody@a.example/v1|https://:something@a.example/v1|http://x/"><script>|https://a.example/a>b',
    'https://a.example/%zz|https://a.example/[a]|https://a.example/a\\b/v1|https://a.example/{v}/v1',
    'https://bücher.example/v1|https://a.example/v1\n',
  ]
  test.each(refused.join('|').split('|'))('%j is refused', text => {
    const problem = / is ".*": expected an http or https URL without user, query or fragment, /s
    for (const flag of ['--public-url', '--staging-url']) {
      expect(problemsOf({ [flag]: text }, {})).toEqual([expect.stringMatching(problem)])
    }
  })
})

describe('secrets are not shown:', () => {
  test.each([
    ['15 characters', 'secret-123456-x'],
    ['a space inside', 'secret-123456789 secret'],
    ['a line end after', 'secret-1234567890\n'],
    ['a tab before', '\tsecret-1234567890'],
    ['a letter beyond ASCII', 'secret-1234567890-é'],
    ['U+007F', 'secret-1234567890-\u007f'],
  ])('an API key with %s', (_what, key) => {
    const problem = `is invalid (${key.length} characters): expected at least 16 visible ASCII characters`
    expect(problemsOf({}, { PETSTORE_API_KEY: key })).toEqual([`PETSTORE_API_KEY ${problem}`])
    expect(problemsOf({ '--api-key': key }, {})).toEqual([`--api-key ${problem}`])
  })

  test.each([
    'mysql://somebody:hunter2@db.example.com/pets',
    'postgres://somebody:hunter2@db.example.com/pets?sslmode=maybe',
    'postgres://somebody:hunter2#1@db.example.com/pets',
  ])('the database URL %s', url => {
    const problems = [...problemsOf({}, { DATABASE_URL: url }), ...problemsOf({ '--database-url': url }, {})]
    expect(problems).toEqual([
      expect.stringMatching(/^DATABASE_URL is invalid: expected /),
      expect.stringMatching(/^--database-url is invalid: expected /),
    ])
    expect(problems.join()).not.toContain('hunter2')
  })

  test.each([
    'replica.example.com',
    'sqlite:hunter2.db',
    'mysql://somebody:hunter2@replica/pets',
    'postgres://somebody:hunter2@replica/pets?hunter2=1',
    'postgresfoo://hunter2@replica/pets',
    ' ',
  ])('the read URL %j', url => {
    const problems = problemsOf({ '--read-url': url }, { DATABASE_URL: 'postgres://db/pets' })
    expect(problems).toEqual([expect.stringMatching(/^--read-url is invalid: expected /)])
    expect(problems.join()).not.toContain('hunter2')
  })

  test.each([
    ['publicUrl', 'postgres://u:s3c@cret@h/x'],
    ['port', 'postgres://u:s3/cret@h'],
    ['host', 'postgres://u:s3?c@ret#s3@h/x'],
    ['logLevel', 'postgres://u:s3\ncret@h/x'],
  ] as const)('a database URL given as %s', (name, url) => {
    const problems = problemsOf({}, { [settings[name].variable]: url })
    expect(problems).toEqual([expect.stringContaining(`${settings[name].variable} is "postgres://…@h`)])
    expect(problems.join()).not.toMatch(/s3|cret/)
  })
})

test('settings that contradict each other are refused', () => {
  expect(problemsOf({ '--read-url': 'postgres://replica/pets' }, {})).toEqual([
    expect.stringContaining('--read-url needs a PostgreSQL store'),
  ])
  for (const flag of ['--tls-cert', '--tls-key']) {
    expect(problemsOf({ [flag]: 'package.json' }, {})).toEqual(['--tls-cert and --tls-key: set both or neither'])
  }
  expect(problemsOf({ '--tls-cert': 'nowhere.pem', '--tls-key': 'package.json' }, {})).toEqual([
    '--tls-cert is "nowhere.pem": expected a file that exists',
  ])
})

test('all problems are reported together', () => {
  const flags = { '--port': 'http', '--staging-url': 'staging', '--database-pool': '0', '--tls-key': 'x.pem' }
  const env = { HOST: 'a b', DATABASE_URL: 'pets.db', PETSTORE_API_KEY: 'short' }
  expect(problemsOf(flags, env).map(problem => problem.split(' ')[0])).toEqual([
    '--port',
    'HOST',
    'DATABASE_URL',
    '--database-pool',
    'PETSTORE_API_KEY',
    '--staging-url',
    '--tls-key',
    '--tls-cert',
  ])
})

test('no two settings share a variable or a flag', () => {
  const all = Object.values(settings)
  expect(new Set(all.map(({ variable }) => variable)).size).toBe(all.length)
  expect(new Set(all.map(flagName)).size).toBe(all.length)
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
  const expected = text.replace(
    /<!-- settings -->.*<!-- \/settings -->/s,
    () => `<!-- settings -->\n${settingsTable()}\n<!-- /settings -->`,
  )
  expect(text).toContain('<!-- settings -->')
  if (process.env['UPDATE_DOCS']) writeFileSync(file, expected)
  else if (text !== expected) {
    throw new Error('The table is out of date. Update it with: UPDATE_DOCS=1 npx bun test src/cli/settings.test.ts')
  }
})
