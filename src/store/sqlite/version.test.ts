import type { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from './connection.ts'
import { DamageGuard } from './fault.ts'
import { openSqlite } from './open.ts'
import { createVersion } from './version.ts'
import { createWriter } from './writer.ts'

let folder: string
let file: string
let stores: ReturnType<typeof openSqlite>
let reading: Database
let writer: { commits: number }
let version: () => unknown

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'petstore-version-'))
  file = join(folder, 'pets.db')
  stores = openSqlite(file, { create: true })
  reading = connect(file, 'readonly')
  writer = { commits: 0 }
  version = createVersion(reading, writer, new DamageGuard())
})

afterEach(async () => {
  reading.close()
  await stores.close()
  rmSync(folder, { recursive: true })
})

const nextTurn = () => new Promise(setImmediate)

function change(): void {
  using other = connect(file, 'readwrite')
  other.run("INSERT INTO pets (name, category_id) VALUES ('Rex', 1)")
}

test('stays the same while nobody changes anything', async () => {
  const before = version()
  expect(before).toBeDefined()
  await nextTurn()
  expect(version()).toBe(before)
})

test('is asked of the file once in a turn', () => {
  const before = version()
  change()
  expect(version()).toBe(before)
})

test('is another one in the turn after a change by another process', async () => {
  const before = version()
  change()
  await nextTurn()
  expect(version()).not.toBe(before)
})

test('is another one in the same turn where our own writer has committed', () => {
  const before = version()
  change()
  writer.commits++
  expect(version()).not.toBe(before)
})

test('a writer has counted its commit when it answers', async () => {
  const own = createWriter(file)
  await own.write('createPet', 'Rex', 1n, null)
  expect(own.commits).toBe(1)
  await own.close()
})
