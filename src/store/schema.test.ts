import { expect, test } from 'bun:test'
import { migrations as ofPostgres } from './postgres/schema.ts'
import { migrations as ofSqlite } from './sqlite/schema.ts'

// Stores with these steps exist. After a change of PostgreSQL's functions, append a step that replaces them.
test.each<[string, readonly string[], string[]]>([
  ['SQLite', ofSqlite, ['4ca2c2f3d58e7c0fdbb4d1e9a3a53b7d343a784154b72df4a4904835568390ec']],
  ['PostgreSQL', ofPostgres, ['80c2482178b691f6e38b9334795c07a52fb72a91ac91913b9ddef8c8e832e732']],
])('the published steps of %s stay as they are, but for comments and spaces', (_, steps, hashes) => {
  const statements = steps.map(step => step.replace(/--.*$/gm, '').replace(/\s+/g, ' '))
  expect(statements.map(text => Bun.SHA256.hash(text, 'hex'))).toEqual(hashes)
})
