import { expect, test } from 'bun:test'
import { databaseUrlProblem } from './open.ts'

const files = 'pets.db ../pets.db /var/lib/pets.db ///var/lib/pets.db with:colon with%20escape'
test.each([
  ...files.split(' ').map(file => `sqlite:${file}`),
  ...['sqlite:with space.db', 'postgres://somebody:hunter2@db/pets', 'postgresql://db:6543/pets?sslmode=require'],
])('%s is valid', url => {
  expect(databaseUrlProblem(url)).toBeUndefined()
})

const withoutFile = 'sqlite: sqlite:// sqlite::memory: sqlite://hunter2@host/pets.db sqlite:////pets.db'
const withOptions = 'sqlite:pets\0.db sqlite:pets.db?mode=ro sqlite:pets.db#part sqlite:file:pets.db'
const paths = 'hunter2 /var/lib/petstore.db data/pets-1.db ~/pets.db sqlite'
const withoutStore = ':memory: sqlite3:pets.db SQLITE:pets.db file:pets.db http://example.com/pets C:\\hunter2.db'
const otherStores = ['', ' ', ' sqlite:pets.db', 'mysql://somebody:hunter2@db/pets']

test.each<[string, ...string[]]>([
  ['expected a file after sqlite:', ...withoutFile.split(' '), ...withOptions.split(' ')],
  ['the file name " pets.db" begins or ends with white space', 'sqlite: pets.db'],
  ['the file name "/a/pets.db\\n" begins or ends with white space', 'sqlite:/a/pets.db\n'],
  ['it looks like a path; put sqlite: in front of it', ...paths.split(' ')],
  ['expected sqlite:FILE, ', ...withoutStore.split(' '), ...otherStores],
  ['expected postgres://USER:PASSWORD@HOST:PORT/DATABASE', 'postgres:', 'postgres:hunter2.db'],
])('%s…, without the password', (problem, ...urls) => {
  for (const url of urls) {
    expect(databaseUrlProblem(url), url).toStartWith(problem)
    expect(databaseUrlProblem(url)).not.toContain('hunter2')
  }
})
