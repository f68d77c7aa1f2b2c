import { describe, expect, test } from 'bun:test'
import { Misuse } from './io.ts'
import { type Env, type Flags, readServeSettings } from './settings.ts'

function problemsOf(flags: Flags, env: Env) {
  try {
    readServeSettings(flags, env)
  } catch (error) {
    if (error instanceof Misuse) return error.problems
    throw error
  }
  return []
}

const DATABASE_URL = 'postgres://somebody:hunter2@db.example.com/pets'

describe('PETSTORE_READ_URL', () => {
  test.each([
    'postgres://somebody:hunter2@replica.example.com/pets',
    'postgresql://replica1,replica2:6543/pets?sslmode=require',
    DATABASE_URL,
  ])('%s names replicas', readUrl => {
    expect(readServeSettings({}, { DATABASE_URL, PETSTORE_READ_URL: readUrl })).toMatchObject({
      databaseUrl: DATABASE_URL,
      readUrl,
    })
    expect(readServeSettings({ readUrl }, { DATABASE_URL }).readUrl).toBe(readUrl)
  })

  test('is absent where it was not given', () => {
    expect(readServeSettings({}, { DATABASE_URL })).not.toHaveProperty('readUrl')
  })

  test.each([
    'replica.example.com',
    'sqlite:replica.db',
    'mysql://somebody:hunter2@replica/pets',
    'postgres://somebody:hunter2@replica',
    'postgres://somebody:hunter2@replica/pets?hunter2=1',
    'postgresfoo://hunter2@replica/pets',
    ' ',
  ])('"%s" names none, and is not shown: it may hold a password', readUrl => {
    for (const [flags, env, label] of [
      [{}, { DATABASE_URL, PETSTORE_READ_URL: readUrl }, 'PETSTORE_READ_URL'],
      [{ readUrl }, { DATABASE_URL }, '--read-url'],
    ] as const) {
      expect(problemsOf(flags, env)).toEqual([expect.stringContaining(`Cannot read ${label}: expected `)])
      expect(problemsOf(flags, env).join()).not.toMatch(/hunter2|sqlite/)
    }
  })

  test.each([{}, { DATABASE_URL: 'sqlite:pets.db' }])('means nothing to a store in a file: %p', env => {
    const readUrl = 'postgres://somebody:hunter2@replica/pets'
    expect(problemsOf({ readUrl }, env)).toEqual([
      'Cannot use --read-url: the store is a file, and has no replicas',
    ])
  })
})

describe('PETSTORE_DATABASE_POOL', () => {
  test.each([
    ['1', 1],
    ['10', 10],
    ['1000', 1_000],
  ])('%s is a number of connections', (text, databasePool) => {
    expect(readServeSettings({}, { PETSTORE_DATABASE_POOL: text }).databasePool).toBe(databasePool)
    expect(readServeSettings({ databasePool: text }, {}).databasePool).toBe(databasePool)
  })

  test('is absent where it was not given: the store knows best', () => {
    expect(readServeSettings({}, { DATABASE_URL })).not.toHaveProperty('databasePool')
  })

  test.each(['0', '1001', '9999', '10000', '-1', '+1', '1.5', '1e2', '0x10', ' 1', '1 ', 'many', '１'])(
    '"%s" is none',
    text => {
      expect(problemsOf({}, { PETSTORE_DATABASE_POOL: text })).toEqual([
        `Cannot read PETSTORE_DATABASE_POOL "${text}": expected a whole number from 1 to 1000`,
      ])
    },
  )
})

describe('PETSTORE_WAIT_FOR_DATABASE', () => {
  test.each([
    ['0s', 0],
    ['0ms', 0],
    ['500ms', 500],
    ['30s', 30_000],
    ['300s', 300_000],
    ['300000ms', 300_000],
  ])('%s is a time', (text, waitForDatabaseMs) => {
    expect(readServeSettings({}, { PETSTORE_WAIT_FOR_DATABASE: text }).waitForDatabaseMs).toBe(
      waitForDatabaseMs,
    )
    expect(readServeSettings({ waitForDatabase: text }, {}).waitForDatabaseMs).toBe(waitForDatabaseMs)
  })

  test('is no time at all where it was not given', () => {
    expect(readServeSettings({}, { DATABASE_URL }).waitForDatabaseMs).toBe(0)
  })

  test.each(['301s', '300001ms', '30', '-1s', '1.5s', '1m', 's', '30 s', ' 30s', '30S', 'forever'])(
    '"%s" is none',
    text => {
      expect(problemsOf({}, { PETSTORE_WAIT_FOR_DATABASE: text })).toEqual([
        `Cannot read PETSTORE_WAIT_FOR_DATABASE "${text}": expected a time from 0s to 300s, such as 500ms or 30s`,
      ])
    },
  )
})

test('all three mistakes are reported together, after what is wrong with the store itself', () => {
  expect(
    problemsOf(
      { readUrl: 'replica', databasePool: '0', waitForDatabase: 'long' },
      { DATABASE_URL: 'postgres://db' },
    ),
  ).toEqual([
    expect.stringContaining('Cannot read DATABASE_URL: '),
    expect.stringContaining('Cannot read --read-url: '),
    expect.stringContaining('Cannot read --database-pool "0": '),
    expect.stringContaining('Cannot read --wait-for-database "long": '),
  ])
})
