import { expect, test } from 'bun:test'
import type { NewPet } from '../pet.ts'
import { migrations as ofPostgres } from './postgres/schema.ts'
import { hashPet } from './rows.ts'
import { migrations as ofSqlite } from './sqlite/schema.ts'

// Stores with these steps exist. After a change of PostgreSQL's functions, append a step that replaces them.
test.each<[string, readonly string[], string[]]>([
  ['SQLite', ofSqlite, ['22e23a59ded58ec19d6e7645c1b46e6bb8d4916f39759e17463df543fd8f8ece']],
  ['PostgreSQL', ofPostgres, ['e28690bb643f63bed0ec74cd5e59fabddcad4e609d3ff650ec8114f4da9d2d7e']],
])('the published steps of %s stay as they are, but for comments and spaces', (_, steps, hashes) => {
  const statements = steps.map(step => step.replace(/--.*$/gm, '').replace(/\s+/g, ' '))
  expect(statements.map(text => Bun.SHA256.hash(text, 'hex'))).toEqual(hashes)
})

// Stored with each idempotency key: a new version must find a retry equal to the first attempt. It is the SHA-256 of the
// values as JSON, such as ["Rex","7",null].
test.each<[NewPet, string]>([
  [{ name: 'Rex', categoryId: 7n }, '6817f08f96deaae0e1b3a6c8759c84e8ae412e8fc6cc070bebbdfcddb3fab57f'],
  [{ name: 'Rex', categoryId: 7n, status: 'sold' }, 'cc92caf8da6ac6590e72f19d3083bf72fa35e0a299e858c9d9eb652922489890'],
  [
    { name: '","7","sold"] 🐕', categoryId: -(2n ** 63n) },
    'e060ff0d880ef5370bc8a24036ac10927b71d3a6738f61c690c9084b795da97c',
  ],
])('the fingerprint of %p never changes', (pet, fingerprint) => {
  expect(hashPet(pet)).toBe(fingerprint)
})
