import { expect, test } from 'bun:test'
import { migrations as ofPostgres } from './postgres/schema.ts'
import { migrations as ofSqlite } from './sqlite/schema.ts'

// Stores with these steps exist. After a change of PostgreSQL's functions, append a step that replaces them.
test.each<[string, readonly string[], string[]]>([
  ['SQLite', ofSqlite, ['22e23a59ded58ec19d6e7645c1b46e6bb8d4916f39759e17463df543fd8f8ece']],
  ['PostgreSQL', ofPostgres, ['e28690bb643f63bed0ec74cd5e59fabddcad4e609d3ff650ec8114f4da9d2d7e']],
])('the published steps of %s stay as they are, but for comments and spaces', (_, steps, hashes) => {
  const statements = steps.map(step => step.replace(/--.*$/gm, '').replace(/\s+/g, ' '))
  expect(statements.map(text => Bun.SHA256.hash(text, 'hex'))).toEqual(hashes)
})
