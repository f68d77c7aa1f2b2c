import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { SetupError } from '../../src/errors.ts'
import type { Pet } from '../../src/pet.ts'
import type { Stores } from '../../src/store.ts'
import { batchPetsMax, type ImportedPet } from '../../src/store.ts'
import type { StoreUnderTest } from './contract.ts'

/** What every store promises of moving a catalogue out of it and into it. */
export function describeTransferContract(database: string, create: () => Promise<StoreUnderTest>): void {
  let underTest: StoreUnderTest
  let stores: Stores
  beforeEach(async () => {
    underTest = await create()
    stores = await underTest.open()
  })
  afterEach(async () => {
    await stores.close()
    await underTest[Symbol.asyncDispose]()
  })

  const add = async (name = 'Rex') => stores.pets.create({ name, categoryId: 1n })
  const pet = (id: bigint): Pet => ({
    id,
    name: `Nr. ${id}`,
    categoryId: 2n ** 62n + id / 2n,
    status: 'sold',
  })
  const many = (count: number, first = 1n) => Array.from({ length: count }, (_, i) => pet(first + BigInt(i)))

  async function* batches(...all: (readonly ImportedPet[])[]) {
    yield* all
  }

  async function everything(): Promise<Pet[]> {
    const pets: Pet[] = []
    for await (const batch of stores.transfer.read()) pets.push(...batch)
    return pets
  }

  const failure = (loading: Promise<unknown>) =>
    loading.then(
      () => 'loaded',
      (error: unknown) => error,
    )

  describe(`${database}: reading everything`, () => {
    test('an empty store holds nothing', async () => {
      expect(await everything()).toEqual([])
      expect([0, undefined]).toContain(await stores.transfer.estimate())
    })

    test('more than a batch comes ascending by id, in batches that are not too large', async () => {
      const pets = many(2 * batchPetsMax + 1)
      await stores.transfer.load(batches(pets), 'keep')
      const sizes: number[] = []
      for await (const { length } of stores.transfer.read()) sizes.push(length)
      expect(Math.max(...sizes)).toBeLessThanOrEqual(batchPetsMax)
      expect(await everything()).toEqual(pets)
    })

    test('is of one moment, and holds up nobody who adds meanwhile', async () => {
      const pets = many(batchPetsMax + 1)
      await stores.transfer.load(batches(pets), 'keep')
      const seen: Pet[] = []
      for await (const batch of stores.transfer.read()) {
        if (seen.length === 0) await add('too late')
        seen.push(...batch)
      }
      expect(seen).toEqual(pets)
      expect((await everything()).at(-1)?.name).toBe('too late')
    })

    test('may be given up in the middle', async () => {
      await stores.transfer.load(batches(many(batchPetsMax + 1)), 'keep')
      for (let i = 0; i < 20; i++) for await (const _ of stores.transfer.read()) break
      await add()
      expect(await stores.transfer.load(batches([pet(1n)]), 'new')).toBe(1n)
    })
  })

  describe(`${database}: loading with ids that are kept`, () => {
    test('gives back exactly what was given, and adds higher ids afterwards', async () => {
      const pets: Pet[] = [
        { id: 3n, name: '  spaces ', categoryId: -(2n ** 63n) },
        { id: 4n, name: 'e\u0301 \u00e9 🐕‍🦺 \u202e\u2028\u0001"\\', categoryId: 0n, status: 'available' },
        { id: 2n ** 53n + 1n, name: 'x'.repeat(1_000), categoryId: 2n ** 63n - 1n, status: 'pending' },
        {
          id: 2n ** 63n - 1_000_000_001n,
          name: "'); DROP TABLE pets;--",
          categoryId: 2n ** 53n + 1n,
          status: 'sold',
        },
      ]
      expect(await stores.transfer.load(batches(pets.slice(0, 1), [], pets.slice(1)), 'keep')).toBe(4n)
      expect(await everything()).toEqual(pets)
      expect((await add()).id).toBe(2n ** 63n - 1_000_000_000n)
    })

    test('outlives the process', async () => {
      await stores.transfer.load(batches(many(3)), 'keep')
      await stores.close()
      stores = await underTest.open()
      expect(await everything()).toEqual(many(3))
      expect((await add()).id).toBeGreaterThan(3n)
    })

    test('is refused where there is an animal, and nothing changes', async () => {
      const before = await add()
      expect(await failure(stores.transfer.load(batches([pet(5n)]), 'keep'))).toBeInstanceOf(SetupError)
      expect(await everything()).toEqual([before])
    })

    test('is refused, or comes first, where an animal is added meanwhile', async () => {
      let adding: Promise<unknown> | undefined
      async function* meanwhile() {
        yield many(3)
        adding = add().catch(() => undefined)
        await Bun.sleep(50)
        yield many(3, 4n)
      }
      const loaded = await failure(stores.transfer.load(meanwhile(), 'keep'))
      await adding
      const ids = (await everything()).map(({ id }) => id)
      if (loaded === 'loaded') expect(ids.slice(0, 6)).toEqual([1n, 2n, 3n, 4n, 5n, 6n])
      else expect(loaded).toBeInstanceOf(SetupError)
      if (loaded !== 'loaded') expect(ids).toHaveLength(1)
    })

    test.each<[string, bigint | undefined]>([
      ['the same id again', 7n],
      ['a lower id', 6n],
      ['no id', undefined],
      ['id 0', 0n],
      ['a negative id', -1n],
      ['an id that leaves too few for later animals', 2n ** 63n - 1_000_000_000n],
      ['the highest id of all', 2n ** 63n - 1n],
    ])('%s is refused, and nothing changes', async (_, id) => {
      const { id: _right, ...rest } = pet(8n)
      const wrong: ImportedPet = id === undefined ? rest : { ...rest, id }
      for (const given of [batches([pet(5n), pet(7n), wrong]), batches([pet(7n)], [wrong])]) {
        expect(await failure(stores.transfer.load(given, 'keep'))).toBeInstanceOf(SetupError)
        expect(await everything()).toEqual([])
      }
    })
  })

  describe(`${database}: loading with new ids`, () => {
    test('they are higher than all before, and in order; ids that came along mean nothing', async () => {
      const first = await add()
      const { id: _, ...withoutId } = pet(9n)
      const given = [pet(7n), pet(7n), pet(1n), withoutId, pet(2n ** 63n - 1n)]
      expect(await stores.transfer.load(batches(given, many(batchPetsMax)), 'new')).toBe(
        BigInt(5 + batchPetsMax),
      )
      const [before, ...after] = await everything()
      expect(before).toEqual(first)
      expect(after.map(({ name }) => name)).toEqual([...given, ...many(batchPetsMax)].map(({ name }) => name))
      expect((await add()).id).toBeGreaterThan(after.at(-1)?.id ?? 0n)
    })

    test('of nothing adds nothing', async () => {
      expect(await stores.transfer.load(batches(), 'new')).toBe(0n)
      expect(await stores.transfer.load(batches([], []), 'keep')).toBe(0n)
      expect(await everything()).toEqual([])
    })
  })

  describe(`${database}: all or nothing`, () => {
    test.each(['keep', 'new'] as const)('batches that end with an error (%s)', async ids => {
      const error = new Error('line 3 is bad')
      async function* failing() {
        yield many(batchPetsMax)
        throw error
      }
      expect(await failure(stores.transfer.load(failing(), ids))).toBe(error)
      expect(await everything()).toEqual([])
      expect((await add()).id).toBeGreaterThan(0n)
    })

    test('nobody sees a part of it', async () => {
      const first = await add()
      const seen: unknown[] = []
      async function* watched() {
        for (let i = 0; i < 3; i++) {
          yield many(1_000)
          seen.push((await stores.pets.list({ limit: 5 })).pets)
        }
      }
      await stores.transfer.load(watched(), 'new')
      expect(seen).toEqual([[first], [first], [first]])
      expect(await everything()).toHaveLength(3_001)
    })

    test('an interruption comes in time, and nothing has changed, or too late', async () => {
      const interruption = new AbortController()
      async function* interrupted() {
        yield many(batchPetsMax)
        interruption.abort(new Error('Ctrl-C'))
      }
      const loaded = await failure(stores.transfer.load(interrupted(), 'new', interruption.signal))
      if (loaded !== 'loaded') expect(loaded).toBe(interruption.signal.reason)
      expect(await everything()).toHaveLength(loaded === 'loaded' ? batchPetsMax : 0)
    })
  })
}
