import { describe, expect, test } from 'bun:test'
import { Misuse } from './io.ts'
import { type Env, type Flags, readServeSettings, readStoreSettings, settings } from './settings.ts'

function problemsOf(flags: Flags, env: Env, read: (flags: Flags, env: Env) => unknown = readServeSettings) {
  try {
    read(flags, env)
  } catch (error) {
    if (error instanceof Misuse) return error.problems
    throw error
  }
  return []
}

describe('without any setting', () => {
  const defaults = {
    port: 8080,
    host: '127.0.0.1',
    reusePort: false,
    databaseUrl: 'sqlite:data/petstore.db',
    waitForDatabaseMs: 0,
    drainMs: 10_000,
    logLevel: 'info',
  } as const

  test('the service listens on 127.0.0.1:8080 and keeps data/petstore.db', () => {
    expect(readServeSettings({}, {})).toStrictEqual(defaults)
    expect(readStoreSettings({}, {})).toBe(defaults.databaseUrl)
  })

  test('an empty variable counts as not set', () => {
    const empty = Object.fromEntries(Object.values(settings).map(({ variable }) => [variable, '']))
    expect(readServeSettings({}, empty)).toStrictEqual(defaults)
    expect(readStoreSettings({}, empty)).toBe(defaults.databaseUrl)
  })

  test('variables of others are ignored', () => {
    expect(readServeSettings({}, { PORTS: 'x', port: 'x', API_KEY: 'x' })).toStrictEqual(defaults)
  })
})

describe('variables and flags', () => {
  const env = {
    PORT: '1',
    HOST: 'variable.example',
    PETSTORE_REUSE_PORT: 'true',
    DATABASE_URL: 'postgres://variable.example/pets',
    PETSTORE_READ_URL: 'postgres://replica.variable.example/pets',
    PETSTORE_DATABASE_POOL: '7',
    PETSTORE_WAIT_FOR_DATABASE: '30s',
    PETSTORE_API_KEY: 'key-from-the-variable',
    PETSTORE_PUBLIC_URL: 'https://variable.example/v1',
    PETSTORE_STAGING_URL: 'https://staging.variable.example/v1',
    PETSTORE_RATE_LIMIT: '10/s',
    PETSTORE_DRAIN_TIME: '1s',
    PETSTORE_CORS_ORIGINS: 'https://variable.example',
    PETSTORE_TLS_CERT: 'package.json',
    PETSTORE_TLS_KEY: 'package.json',
    PETSTORE_LOG_LEVEL: 'warn',
  }
  const flags = {
    port: '2',
    host: 'flag.example',
    reusePort: true,
    databaseUrl: 'postgres://flag.example/pets',
    readUrl: 'postgres://replica.flag.example/pets',
    databasePool: '20',
    waitForDatabase: '500ms',
    apiKey: 'key-from-the-flag',
    publicUrl: 'https://flag.example/v1',
    stagingUrl: 'https://staging.flag.example/v1',
    rateLimit: '600/m',
    drainTime: '250ms',
    corsOrigins: 'https://flag.example, http://localhost:3000',
    tlsCert: 'README.md',
    tlsKey: 'README.md',
    logLevel: 'error',
  } as const
  const flagged = {
    port: 2,
    host: 'flag.example',
    reusePort: true,
    databaseUrl: 'postgres://flag.example/pets',
    readUrl: 'postgres://replica.flag.example/pets',
    databasePool: 20,
    waitForDatabaseMs: 500,
    environmentKey: 'key-from-the-flag',
    publicUrl: 'https://flag.example/v1',
    stagingUrl: 'https://staging.flag.example/v1',
    rateLimit: { requests: 600, seconds: 60 },
    drainMs: 250,
    corsOrigins: ['https://flag.example', 'http://localhost:3000'],
    tls: { cert: 'README.md', key: 'README.md' },
    logLevel: 'error',
  } as const

  test('every setting can be a variable', () => {
    expect(readServeSettings({}, env)).toStrictEqual({
      port: 1,
      host: 'variable.example',
      reusePort: true,
      databaseUrl: 'postgres://variable.example/pets',
      readUrl: 'postgres://replica.variable.example/pets',
      databasePool: 7,
      waitForDatabaseMs: 30_000,
      environmentKey: 'key-from-the-variable',
      publicUrl: 'https://variable.example/v1',
      stagingUrl: 'https://staging.variable.example/v1',
      rateLimit: { requests: 10, seconds: 1 },
      drainMs: 1_000,
      corsOrigins: ['https://variable.example'],
      tls: { cert: 'package.json', key: 'package.json' },
      logLevel: 'warn',
    })
    expect(readStoreSettings({}, env)).toBe('postgres://variable.example/pets')
  })

  test('every setting can be a flag, which wins over the variable', () => {
    expect(readServeSettings(flags, {})).toStrictEqual(flagged)
    expect(readServeSettings(flags, env)).toStrictEqual(flagged)
    expect(readStoreSettings(flags, env)).toBe('postgres://flag.example/pets')
  })

  test('a flag wins over a variable that could not be read', () => {
    expect(readServeSettings({ port: '2' }, { PORT: 'x' }).port).toBe(2)
  })

  test('a broken flag is a problem although the variable is sound', () => {
    expect(problemsOf({ port: 'x' }, { PORT: '1' })).toEqual([
      'Cannot read --port "x": expected a whole number from 0 to 65535',
    ])
  })

  test.each([
    'port',
    'host',
    'databaseUrl',
    'readUrl',
    'databasePool',
    'waitForDatabase',
    'apiKey',
    'publicUrl',
    'stagingUrl',
  ] as const)('an empty flag for %s is a problem: it was meant to say something', name => {
    const [problem = ''] = problemsOf({ [name]: '' }, {})
    expect(problem).toContain(`--${settings[name].flag}`)
  })
})

describe('port', () => {
  test.each<[string, number]>([
    ['0', 0],
    ['80', 80],
    ['65535', 65_535],
  ])('%s is read', (text, port) => {
    expect(readServeSettings({}, { PORT: text }).port).toBe(port)
  })

  test.each(['65536', '99999', '100000', '-1', '+1', '1.0', '1e3', '0x50', ' 80', '80 ', 'http', '８０'])(
    '"%s" is refused',
    text => {
      expect(problemsOf({}, { PORT: text })).toEqual([
        `Cannot read PORT "${text}": expected a whole number from 0 to 65535`,
      ])
    },
  )
})

describe('host', () => {
  test.each([
    ['0.0.0.0', '0.0.0.0'],
    ['localhost', 'localhost'],
    ['pets-1.example.com', 'pets-1.example.com'],
    ['::', '::'],
    ['::1', '::1'],
    ['[::1]', '::1'],
  ])('%s is read', (text, host) => {
    expect(readServeSettings({}, { HOST: text }).host).toBe(host)
  })

  test.each([' ', 'a b', 'http://localhost', 'localhost/', '[]', '[::1', 'a,b', 'höst', '*'])(
    '"%s" is refused',
    text => {
      expect(problemsOf({}, { HOST: text })).toEqual([
        `Cannot read HOST "${text}": expected a host name or an IP address`,
      ])
    },
  )
})

describe('base address', () => {
  test.each([
    ['https://pets.example.com/v1', 'https://pets.example.com/v1'],
    ['https://pets.example.com/v1/', 'https://pets.example.com/v1'],
    ['https://pets.example.com/v1//', 'https://pets.example.com/v1'],
    ['https://pets.example.com', 'https://pets.example.com/v1'],
    ['https://pets.example.com/', 'https://pets.example.com/v1'],
    ['http://localhost:8080', 'http://localhost:8080/v1'],
    ['https://example.com:443/shop', 'https://example.com/shop/v1'],
    ['https://example.com/shop/v1', 'https://example.com/shop/v1'],
    ['https://example.com/shopv1', 'https://example.com/shopv1/v1'],
    ['https://example.com/v1/shop', 'https://example.com/v1/shop/v1'],
    ['https://example.com/v10', 'https://example.com/v10/v1'],
    ['http://[::1]:8080/v1', 'http://[::1]:8080/v1'],
    ['HTTPS://Pets.Example.COM/v1', 'https://pets.example.com/v1'],
  ])('%s becomes %s', (text, address) => {
    const read = readServeSettings({}, { PETSTORE_PUBLIC_URL: text, PETSTORE_STAGING_URL: text })
    expect(read.publicUrl).toBe(address)
    expect(read.stagingUrl).toBe(address)
  })

  test.each([
    ' ',
    'pets.example.com',
    'pets.example.com/v1',
    '/v1',
    '//pets.example.com/v1',
    'https://',
    'https://a b/v1',
    'https://a:99999/v1',
    'ftp://pets.example.com/v1',
    'javascript:alert(1)',
    'file:///v1',
    'https://pets.example.com/v1?a=b',
    'https://pets.example.com/v1#a',
    'https://somebody@pets.example.com/v1',
    'https://:something@pets.example.com/v1',
    'http://x/"><script>',
    'https://example.com/a>b',
    'https://example.com/%zz',
    'https://example.com/[a]',
    'https://pets.example.com/<v1>',
    'https://pets.example.com/a\\b/v1',
    'https://pets.example.com/{v}/v1',
    'https://bücher.example/v1',
    'https://pets.example.com/v1\n',
  ])('"%s" is refused', text => {
    for (const variable of ['PETSTORE_PUBLIC_URL', 'PETSTORE_STAGING_URL']) {
      const problems = problemsOf({}, { [variable]: text })
      expect(problems).toHaveLength(1)
      expect(problems[0]).toStartWith(`Cannot read ${variable}`)
      expect(problems[0]).toEndWith('such as https://pets.example.com/v1')
    }
  })
})

describe('the key from outside', () => {
  test.each([
    ['16 visible characters', 'a'.repeat(16)],
    ['every visible character', String.fromCharCode(...Array.from({ length: 94 }, (_, i) => 0x21 + i))],
    ['a long one', 'x'.repeat(1_000)],
  ])('%s will do', (_what, key) => {
    expect(readServeSettings({}, { PETSTORE_API_KEY: key }).environmentKey).toBe(key)
    expect(readServeSettings({ apiKey: key }, {}).environmentKey).toBe(key)
  })

  test.each([
    ['15 characters', 'secret-123456-x'],
    ['one character', 's'],
    ['a space inside', 'secret-123456789 secret'],
    ['a line end after', 'secret-1234567890\n'],
    ['a tab before', '\tsecret-1234567890'],
    ['a letter beyond ASCII', 'secret-1234567890-é'],
    ['U+007F', 'secret-1234567890-\u007f'],
  ])('%s: refused without showing it', (_what, key) => {
    for (const [flags, env, label] of [
      [{}, { PETSTORE_API_KEY: key }, 'PETSTORE_API_KEY'],
      [{ apiKey: key }, {}, '--api-key'],
    ] as const) {
      expect(problemsOf(flags, env)).toEqual([
        `Cannot use ${label} (${key.length} characters): expected at least 16, all of them visible ASCII; bin/petstore keys create makes a good one`,
      ])
    }
  })
})

describe('mistakes', () => {
  test('all are reported together', () => {
    const problems = problemsOf(
      { port: 'http', stagingUrl: 'staging' },
      {
        HOST: 'a b',
        DATABASE_URL: 'pets.db',
        PETSTORE_API_KEY: 'short',
        PETSTORE_PUBLIC_URL: 'ftp://pets.example.com',
      },
    )
    const named = [
      '--port',
      'HOST',
      'DATABASE_URL',
      'PETSTORE_API_KEY',
      'PETSTORE_PUBLIC_URL',
      '--staging-url',
    ]
    expect(problems).toHaveLength(named.length)
    for (const [index, name] of named.entries()) expect(problems[index]).toContain(` ${name}`)
  })

  test('the commands that only need the store look at nothing else', () => {
    expect(problemsOf({}, { PORT: 'x', PETSTORE_API_KEY: 'x' }, readStoreSettings)).toEqual([])
    expect(problemsOf({}, { DATABASE_URL: 'pets.db', PORT: 'x' }, readStoreSettings)).toHaveLength(1)
  })

  test.each([
    'mysql://somebody:hunter2@db.example.com/pets',
    'hunter2',
    'sqlite://hunter2@db/pets.db',
    'postgres://somebody:hunter2@db.example.com',
    'postgres://somebody:hunter2@db.example.com/pets?sslmode=maybe',
    'postgres://somebody:hunter2#1@db.example.com/pets',
  ])('a broken DATABASE_URL (%s) is not shown: it may hold a password', url => {
    for (const problems of [
      problemsOf({}, { DATABASE_URL: url }),
      problemsOf({ databaseUrl: url }, {}),
      problemsOf({}, { DATABASE_URL: url }, readStoreSettings),
    ]) {
      expect(problems).toHaveLength(1)
      expect(problems.join()).not.toContain('hunter2')
    }
  })

  test.each([
    ['publicUrl', 'postgres://u:s3c@cret@h/x'],
    ['port', 'postgres://u:s3/cret@h'],
    ['host', 'postgres://u:s3?c@ret#s3@h/x'],
    ['logLevel', 'postgres://u:s3\ncret@h/x'],
  ] as const)(
    'an address that was meant for another setting (%s %p) is shown without its password',
    (name, url) => {
      for (const [flags, env, label] of [
        [{ [name]: url }, {}, `--${settings[name].flag}`],
        [{}, { [settings[name].variable]: url }, settings[name].variable],
      ] as const) {
        const [problem, ...others] = problemsOf(flags, env)
        expect(others).toEqual([])
        expect(problem).toStartWith(`Cannot read ${label} "postgres://…@h`)
        expect(problem).not.toMatch(/s3|cret/)
      }
    },
  )
})

test('no two settings share a variable or a flag', () => {
  const all = Object.values(settings)
  expect(new Set(all.map(({ variable }) => variable)).size).toBe(all.length)
  expect(new Set(all.map(({ flag }) => flag)).size).toBe(all.length)
})

describe('PETSTORE_RATE_LIMIT', () => {
  test.each([
    ['1/s', { requests: 1, seconds: 1 }],
    ['100/s', { requests: 100, seconds: 1 }],
    ['600/m', { requests: 600, seconds: 60 }],
    ['999999999/h', { requests: 999_999_999, seconds: 3_600 }],
  ])('%s is a rate', (rate, rateLimit) => {
    expect(readServeSettings({}, { PETSTORE_RATE_LIMIT: rate }).rateLimit).toEqual(rateLimit)
  })

  test.each(['0/s', '-1/s', '1.5/s', '100', '100/d', '/s', '100/ s', '1e3/s', '1000000000/s'])(
    '%s is none',
    rate => {
      expect(problemsOf({}, { PETSTORE_RATE_LIMIT: rate })).toHaveLength(1)
    },
  )
})

describe('PETSTORE_DRAIN_TIME', () => {
  test.each([
    ['0s', 0],
    ['500ms', 500],
    ['30s', 30_000],
    ['300s', 300_000],
  ])('%s is a time', (time, drainMs) => {
    expect(readServeSettings({}, { PETSTORE_DRAIN_TIME: time }).drainMs).toBe(drainMs)
  })

  test.each(['301s', '10', '-1s', '1.5s', '1m', 's', 'soon'])('%s is none', time => {
    expect(problemsOf({}, { PETSTORE_DRAIN_TIME: time })).toHaveLength(1)
  })
})

describe('PETSTORE_CORS_ORIGINS', () => {
  test.each([
    '*',
    'https://a.example/',
    'a.example',
    'https://a.example,',
    'null',
    'https://a.example/path',
    'file:///x',
  ])('%s is no list of origins', origins => {
    expect(problemsOf({}, { PETSTORE_CORS_ORIGINS: origins })).toHaveLength(1)
  })
})

describe('a certificate', () => {
  test('needs its key, and both have to be there', () => {
    expect(problemsOf({ tlsCert: 'package.json' }, {})).toEqual([expect.stringContaining('go together')])
    expect(problemsOf({ tlsKey: 'package.json' }, {})).toEqual([expect.stringContaining('go together')])
    expect(problemsOf({ tlsCert: 'nowhere.pem', tlsKey: 'package.json' }, {})).toEqual([
      expect.stringContaining('there is no file nowhere.pem'),
    ])
  })
})

describe('PETSTORE_LOG_LEVEL', () => {
  test.each(['debug', 'info', 'warn', 'error'] as const)('%s is a level', logLevel => {
    expect(readServeSettings({ logLevel }, {}).logLevel).toBe(logLevel)
  })

  test.each(['INFO', 'trace', 'silent', '1'])('%s is none', logLevel => {
    expect(problemsOf({ logLevel }, {})).toHaveLength(1)
  })
})
