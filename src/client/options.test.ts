import { describe, expect, test } from 'bun:test'
import { inspect } from 'node:util'
import { PetstoreClient } from './client.ts'
import { type ClientOptions, readOptions } from './options.ts'

const apiKey = 'key-that-nobody-may-see'
const baseUrls = { production: 'https://pets.example.com/v1', staging: 'https://staging.example.com/v1/' }

describe('the base address', () => {
  test.each([
    ['http://127.0.0.1:8080/v1', 'http://127.0.0.1:8080/v1'],
    ['http://127.0.0.1:8080/v1/', 'http://127.0.0.1:8080/v1'],
    ['HTTPS://Pets.Example.com', 'https://pets.example.com'],
    [new URL('https://pets.example.com/shop/v1'), 'https://pets.example.com/shop/v1'],
  ])('%p is used as %s', (baseUrl, used) => {
    expect(readOptions({ baseUrl, apiKey }).baseUrl).toBe(used)
  })

  test.each([
    ['production', 'https://pets.example.com/v1'],
    ['staging', 'https://staging.example.com/v1'],
  ] as const)('is picked by the environment %s', (environment, used) => {
    expect(readOptions({ baseUrls, environment, apiKey }).baseUrl).toBe(used)
  })

  test.each(['', '/v1', 'pets.example.com', 'ftp://pets.example.com', undefined])('%p is none', baseUrl => {
    expect(() => readOptions({ baseUrl, apiKey } as ClientOptions)).toThrow(/^Cannot read baseUrl: expected /)
  })

  test.each(['https://u:secret@a.example/v1', 'https://a.example/v1?secret', 'https://a.example/v1#secret'])(
    '%s has a part too many, and is not shown',
    baseUrl => {
      const error = failureOf({ baseUrl, apiKey })
      expect(error).toBeInstanceOf(TypeError)
      expect(String(error)).not.toContain('secret')
    },
  )

  test.each<[object, RegExp]>([
    [{ baseUrls }, /^Cannot read environment undefined: expected production or staging$/],
    [{ baseUrls, environment: 'test' }, /^Cannot read environment test: expected/],
    [{ baseUrls: { production: 'x' }, environment: 'staging' }, /^Cannot read baseUrls.staging: expected/],
    [{ baseUrls, environment: 'staging', baseUrl: 'http://a' }, /^Cannot use baseUrl and baseUrls together/],
  ])('%p does not say which', (options, message) => {
    expect(() => readOptions({ ...options, apiKey } as ClientOptions)).toThrow(message)
  })
})

describe('the key', () => {
  test.each(['', 'with space', 'secret\nx', 'secret\u00e4', undefined, 7])(
    '%p is refused and not shown',
    key => {
      const error = failureOf({ baseUrl: 'http://a', apiKey: key } as ClientOptions)
      expect(error).toBeInstanceOf(TypeError)
      expect(String(error)).not.toContain('secret')
    },
  )

  test('is not seen by whoever prints the client', () => {
    const client = new PetstoreClient({ baseUrl: 'http://a', apiKey })
    const printed = [
      inspect(client, { depth: 9, showHidden: true }),
      Bun.inspect(client),
      JSON.stringify(client),
    ]
    expect(printed.join()).not.toContain(apiKey)
  })
})

test.each([
  { timeoutMs: 0 },
  { timeoutMs: 2 ** 31 },
  { timeoutMs: Number.NaN },
  { timeoutMs: Number.POSITIVE_INFINITY },
  { retries: -1 },
  { backoffMs: -1 },
  { backoffMaxMs: Number.POSITIVE_INFINITY },
  { retryAfterMaxMs: -1 },
])('%p is out of range', options => {
  const [name] = Object.keys(options)
  expect(() => readOptions({ baseUrl: 'http://a', apiKey, ...options })).toThrow(
    new RegExp(`^Cannot read ${name} .*: expected a number from`),
  )
})

function failureOf(options: ClientOptions): unknown {
  try {
    return readOptions(options)
  } catch (error) {
    return error
  }
}
