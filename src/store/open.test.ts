import { describe, expect, test } from 'bun:test'
import { databaseUrlProblem } from './open.ts'

describe('DATABASE_URL', () => {
  test.each([
    'sqlite:pets.db',
    'sqlite:data/petstore.db',
    'sqlite:./pets.db',
    'sqlite:../pets.db',
    'sqlite:/var/lib/petstore.db',
    'sqlite:///var/lib/petstore.db',
    'sqlite:with space.db',
    'sqlite:with:colon.db',
    'sqlite:with%20escape.db',
    'postgres://somebody:hunter2@db/pets',
    'postgresql://somebody@db1,db2:6543/pets?sslmode=require',
  ])('%s names a store', url => {
    expect(databaseUrlProblem(url)).toBeUndefined()
  })

  test.each([
    'sqlite:',
    'sqlite://',
    'sqlite::memory:',
    'sqlite://pets.db',
    'sqlite://host/pets.db',
    'sqlite:////pets.db',
    'sqlite:pets\0.db',
    'sqlite:pets.db?mode=ro',
    'sqlite:pets.db#part',
    'sqlite:file:pets.db',
  ])('%j names no file', url => {
    expect(databaseUrlProblem(url)).toStartWith('expected a file after sqlite:')
  })

  test.each([
    '',
    ' ',
    'pets.db',
    '/var/lib/petstore.db',
    ':memory:',
    'sqlite',
    'sqlite3:pets.db',
    'SQLITE:pets.db',
    ' sqlite:pets.db',
    'file:pets.db',
    'http://example.com/pets',
    'mysql://somebody@db/pets',
  ])('"%s" is of no kind that we keep', url => {
    expect(databaseUrlProblem(url)).toStartWith('expected ')
  })

  test.each([
    'postgres:',
    'postgres://db',
    'postgres://somebody@db/',
    'postgresql://db/pets?connect_timeout=3',
    'postgres://db:65536/pets',
    'postgres:pets.db',
  ])('%s names no database of PostgreSQL', url => {
    expect(databaseUrlProblem(url)).toStartWith('expected postgres://USER:PASSWORD@HOST:PORT/DATABASE')
  })

  test.each([
    'mysql://somebody:hunter2@db/pets',
    'hunter2',
    'sqlite://hunter2@db/pets',
    'postgres://somebody:hunter2@db',
    'postgres://somebody:hunter2@@db/pets',
    'postgres://somebody:hunter2/@db/pets',
  ])('what is wrong with %s is said without a password', url => {
    expect(databaseUrlProblem(url)).toStartWith('expected ')
    expect(databaseUrlProblem(url)).not.toContain('hunter2')
  })
})
