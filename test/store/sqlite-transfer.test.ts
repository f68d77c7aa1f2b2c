import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { SetupError, StoreUnavailable } from '../../src/errors.ts'
import { openStores } from '../../src/store/open.ts'
import type { ImportedPet } from '../../src/store.ts'
import { temporaryFolder } from '../support/folder.ts'

const rex = { name: 'Rex', categoryId: 1n }

async function withStore<T>(work: (file: string) => Promise<T>): Promise<T> {
  using folder = temporaryFolder()
  return await work(join(folder.path, 'pets.db'))
}

async function* once(...pets: ImportedPet[]) {
  yield pets
}

test('SQLite: whoever adds an animal waits for the animals to be taken in, not for the lines to come', () =>
  withStore(async file => {
    const stores = await openStores(`sqlite:${file}`, { create: true })
    async function* slow() {
      for (let i = 0; i < 3; i++) {
        yield [rex]
        expect((await stores.pets.create({ name: 'meanwhile', categoryId: 1n })).name).toBe('meanwhile')
      }
    }
    expect(await stores.transfer.load(slow(), 'new')).toBe(3n)
    const { pets } = await stores.pets.list({ limit: 100 })
    expect(pets.map(({ name }) => name)).toEqual([...Array(3).fill('meanwhile'), ...Array(3).fill('Rex')])
    await stores.close()
  }))

test('SQLite: ids of animals that were deleted by hand are not given again', () =>
  withStore(async file => {
    const stores = await openStores(`sqlite:${file}`, { create: true })
    await stores.transfer.load(once({ ...rex, id: 50n }), 'keep')
    using byHand = new Database(file)
    byHand.run('DELETE FROM pets')
    await stores.transfer.load(once({ ...rex, id: 7n }), 'keep')
    expect((await stores.pets.create(rex)).id).toBe(51n)
    await stores.close()
  }))

test('SQLite: where not enough ids are left, that is said, and nothing changes', () =>
  withStore(async file => {
    const stores = await openStores(`sqlite:${file}`, { create: true })
    await stores.pets.create(rex)
    using byHand = new Database(file)
    byHand.run('UPDATE sqlite_sequence SET seq = 9223372036854775806')
    const refused = await stores.transfer.load(once(rex, rex), 'new').catch(error => error)
    expect(refused).toBeInstanceOf(SetupError)
    expect(refused.message).toMatch(/Cannot assign 2 new ids: .* up to 9223372036854775806,/)
    expect(await stores.transfer.estimate()).toBe(1)
    expect(await stores.transfer.load(once(rex), 'new')).toBe(1n)
    await stores.close()
  }))

test('SQLite: an interruption while the animals are taken in is heard', () =>
  withStore(async file => {
    const stores = await openStores(`sqlite:${file}`, { create: true })
    const interruption = new AbortController()
    async function* interrupted() {
      yield Array.from({ length: 50_000 }, () => rex)
      setImmediate(() => interruption.abort(new Error('Ctrl-C')))
    }
    const loaded = await stores.transfer.load(interrupted(), 'new', interruption.signal).catch(error => error)
    expect(loaded).toBe(interruption.signal.reason)
    expect(await stores.transfer.estimate()).toBe(0)
    expect((await stores.pets.create(rex)).id).toBe(1n)
    await stores.close()
  }))

test('SQLite: a file that is moved away meanwhile takes in nothing', () =>
  withStore(async file => {
    const stores = await openStores(`sqlite:${file}`, { create: true })
    async function* moving() {
      yield [rex]
      renameSync(file, `${file}.moved`)
    }
    expect(await stores.transfer.load(moving(), 'new').catch(error => error)).toBeInstanceOf(StoreUnavailable)
    renameSync(`${file}.moved`, file)
    expect(await stores.transfer.estimate()).toBe(0)
    await stores.close()
    expect(readdirSync(join(file, '..'))).toEqual(['pets.db'])
  }))
