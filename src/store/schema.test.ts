import { expect, test } from 'bun:test'
import { migrations as ofPostgres } from './postgres/schema.ts'
import { migrations as ofSqlite } from './sqlite/schema.ts'

// Stores with these steps exist. After a change of PostgreSQL's functions, append a step that replaces them.
test.each<[string, readonly string[], string[]]>([
  ['SQLite', ofSqlite, ['c75afecbca8539b6bcc3df1b47a6ee49eb56cd14253c7597779b2149dab527f7']],
  ['PostgreSQL', ofPostgres, ['e40f80a1d46216a26de4589ef9599399b04a03119e39f8043c5c795607de7cdd']],
])('the published steps of %s stay as they are, but for comments and spaces', (_, steps, hashes) => {
  const statements = steps.map(step => step.replace(/--.*$/gm, '').replace(/\s+/g, ' '))
  expect(statements.map(text => Bun.SHA256.hash(text, 'hex'))).toEqual(hashes)
})
