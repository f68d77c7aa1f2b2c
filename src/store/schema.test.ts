import { expect, test } from 'bun:test'
import { migrations as ofPostgres } from './postgres/schema.ts'
import { migrations as ofSqlite } from './sqlite/schema.ts'

// Stores with these steps exist. After a change of PostgreSQL's functions, append a step that replaces them.
test.each<[string, readonly string[], string[]]>([
  ['SQLite', ofSqlite, ['4ca2c2f3d58e7c0fdbb4d1e9a3a53b7d343a784154b72df4a4904835568390ec']],
  ['PostgreSQL', ofPostgres, ['d0a6575658075f831a8cddbd21a26b79b3596b9185d6988604d61b1749d003ec']],
])('the published steps of %s stay as they are, but for comments and spaces', (_, steps, hashes) => {
  const statements = steps.map(step => step.replace(/--.*$/gm, '').replace(/\s+/g, ' '))
  expect(statements.map(text => Bun.SHA256.hash(text, 'hex'))).toEqual(hashes)
})
