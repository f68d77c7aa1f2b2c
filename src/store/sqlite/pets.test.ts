import type { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DamageGuard } from './errors.ts'
import { openSqlite } from './open.ts'
import { createSqlitePets } from './pets.ts'
import { connect } from './schema.ts'
import { Writer } from './writer.ts'
import type { Writes } from './writer-thread.ts'

let folder: string
let file: string
let stores: ReturnType<typeof openSqlite>
let reading: Database
let writer: { commits: number; write(): Promise<never> }
let version: () => unknown

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'petstore-version-'))
  file = join(folder, 'pets.db')
  stores = openSqlite(file, { create: true })
  reading = connect(file, 'readonly')
  writer = { commits: 0, write: () => Promise.reject(new Error('not used')) }
  const pets = createSqlitePets(reading, writer, new DamageGuard())
  version = () => pets.version?.()
})

afterEach(async () => {
  reading.close()
  await stores.close()
  rmSync(folder, { recursive: true })
})

const nextTick = () => new Promise(setImmediate)

function changeByAnotherProcess(): void {
  using other = connect(file, 'readwrite')
  other.run("INSERT INTO pets (name, category_id) VALUES ('Rex', 1)")
}

test('the version stays the same without a change', async () => {
  const before = version()
  expect(before).toBeDefined()
  await nextTick()
  expect(version()).toBe(before)
})

test('the file is asked once in an event-loop tick: a change by another process shows in the next one', async () => {
  const before = version()
  changeByAnotherProcess()
  expect(version()).toBe(before)
  await nextTick()
  expect(version()).not.toBe(before)
})

test('a commit of our own writer shows in the same tick', () => {
  const before = version()
  changeByAnotherProcess()
  writer.commits++
  expect(version()).not.toBe(before)
})

test('a writer counts its commit before the write resolves', async () => {
  const own = new Writer<Writes>(file)
  await own.write('createPet', 'Rex', 1n, null)
  expect(own.commits).toBe(1)
  await own.close()
})
