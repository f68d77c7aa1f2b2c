import { expect, test } from 'bun:test'
import { databaseUrlProblem } from './open.ts'

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
])('%s is valid', url => {
  expect(databaseUrlProblem(url)).toBeUndefined()
})

const noFile = 'expected a file after sqlite:'
const noStore = 'expected sqlite:FILE, '
const noDatabase = 'expected postgres://USER:PASSWORD@HOST:PORT/DATABASE'

test.each([
  ['sqlite:', noFile],
  ['sqlite://', noFile],
  ['sqlite::memory:', noFile],
  ['sqlite://pets.db', noFile],
  ['sqlite://hunter2@host/pets.db', noFile],
  ['sqlite:////pets.db', noFile],
  ['sqlite:pets\0.db', noFile],
  ['sqlite:pets.db?mode=ro', noFile],
  ['sqlite:pets.db#part', noFile],
  ['sqlite:file:pets.db', noFile],
  ['', noStore],
  [' ', noStore],
  ['hunter2', noStore],
  ['/var/lib/petstore.db', noStore],
  [':memory:', noStore],
  ['sqlite', noStore],
  ['sqlite3:pets.db', noStore],
  ['SQLITE:pets.db', noStore],
  [' sqlite:pets.db', noStore],
  ['file:pets.db', noStore],
  ['http://example.com/pets', noStore],
  ['mysql://somebody:hunter2@db/pets', noStore],
  ['postgres:', noDatabase],
  ['postgres:pets.db', noDatabase],
  ['postgres://somebody:hunter2@db', noDatabase],
  ['postgres://somebody:hunter2@@db/pets', noDatabase],
  ['postgres://somebody:hunter2/@db/pets', noDatabase],
])('%j: %s, without the password', (url, problem) => {
  expect(databaseUrlProblem(url)).toStartWith(problem)
  expect(databaseUrlProblem(url)).not.toContain('hunter2')
})
