import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { issueApiKey, type NewApiKey } from '../../src/api-key.ts'
import type { NewPet, Pet, PetStatus } from '../../src/pet.ts'
import type { Creation, IdempotencyKey, Stores } from '../../src/store.ts'

/** An empty database of its own, which can be opened more than once, as several processes would. */
export interface StoreUnderTest extends AsyncDisposable {
  open(): Promise<Stores>
}

/** What every store promises, whatever database is behind it. */
export function describeStoreContract(database: string, create: () => Promise<StoreUnderTest>): void {
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

  const add = async (pet: Partial<NewPet> = {}) => stores.pets.create({ name: 'Rex', categoryId: 1n, ...pet })
  const idsOf = (pets: readonly Pet[]) => pets.map(({ id }) => id)

  async function walk(limit: number, status?: PetStatus, between = async () => {}): Promise<Pet[]> {
    const seen: Pet[] = []
    for (;;) {
      const after = seen.at(-1)?.id
      const page = await stores.pets.list({
        limit,
        ...(status && { status }),
        ...(after !== undefined && { after }),
      })
      seen.push(...page.pets)
      if (!page.more) return seen
      await between()
    }
  }

  describe(`${database}: animals`, () => {
    test('an empty store lists nothing and finds nothing', async () => {
      expect(await stores.pets.list({ limit: 20 })).toEqual({ pets: [], more: false })
      expect(await stores.pets.get(1n)).toBeUndefined()
    })

    test.each([9223372036854775807n, -9223372036854775808n, 9007199254740993n, -9007199254740993n, 0n])(
      'categoryId %p comes back digit for digit',
      async categoryId => {
        const created = await add({ categoryId })
        expect(created.categoryId).toBe(categoryId)
        expect((await stores.pets.get(created.id))?.categoryId).toBe(categoryId)
        expect((await stores.pets.list({ limit: 1 })).pets[0]?.categoryId).toBe(categoryId)
      },
    )

    test('whatever name and category, the animal comes back exactly as it was added', async () => {
      const pet = fc.record(
        {
          name: fc.string({ unit: 'grapheme', minLength: 1 }).filter(name => !name.includes('\0')),
          categoryId: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
          status: fc.constantFrom('available' as const, 'pending' as const, 'sold' as const),
        },
        { requiredKeys: ['name', 'categoryId'] },
      )
      await fc.assert(
        fc.asyncProperty(pet, async sent => {
          const created = await stores.pets.create(sent)
          expect(created).toEqual({ ...sent, id: created.id })
          expect(await stores.pets.get(created.id)).toEqual(created)
        }),
        { numRuns: 50 },
      )
    })

    test('a name is kept to the letter: spaces, accents in either form, right to left, emoji', async () => {
      const names = [
        '  Rex ',
        'Zoë',
        'Zoe\u0308',
        'كلب',
        '🐕‍🦺',
        "Robert'); DROP TABLE pets;--",
        '\u2028',
        '%_\\"\'`',
      ]
      for (const name of names) expect((await add({ name })).name).toBe(name)
      expect((await walk(3)).map(({ name }) => name)).toEqual(names)
    })

    test('an animal without a status comes back without one, and no filter finds it', async () => {
      const { id } = await add()
      expect(await stores.pets.get(id)).toEqual({ id, name: 'Rex', categoryId: 1n })
      for (const status of ['available', 'pending', 'sold'] as const) {
        expect((await stores.pets.list({ limit: 20, status })).pets).toEqual([])
      }
    })

    test('ids rise with every animal', async () => {
      const ids = idsOf([await add(), await add(), await add()])
      expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)))
      expect(new Set(ids).size).toBe(3)
      expect(ids[0]).toBeGreaterThan(0n)
    })

    test.each([9223372036854775807n, -9223372036854775808n, 0n, -1n])('no animal has id %p', async id => {
      await add()
      expect(await stores.pets.get(id)).toBeUndefined()
    })

    test('a list says whether more animals follow, on the very last one too', async () => {
      for (let i = 0; i < 5; i++) await add()
      expect((await stores.pets.list({ limit: 4 })).more).toBe(true)
      expect((await stores.pets.list({ limit: 5 })).more).toBe(false)
      expect((await stores.pets.list({ limit: 6 })).pets).toHaveLength(5)
    })

    test('walking with any limit and any status visits every animal once, in ascending order', async () => {
      const statuses = ['available', 'pending', 'sold', undefined] as const
      const added: Pet[] = []
      for (let i = 0; i < 47; i++) {
        const status = statuses[(i * 7) % 4]
        added.push(await add(status ? { status } : {}))
      }
      for (const limit of [1, 2, 7, 46, 47, 48, 100]) {
        expect(idsOf(await walk(limit))).toEqual(idsOf(added))
        for (const status of ['available', 'pending', 'sold'] as const) {
          expect(idsOf(await walk(limit, status))).toEqual(idsOf(added.filter(pet => pet.status === status)))
        }
      }
    })

    test('walking while animals are added misses none and shows none twice', async () => {
      const added: Pet[] = []
      for (let i = 0; i < 10; i++) added.push(await add())
      let more = 12
      const seen = await walk(3, undefined, async () => {
        if (more-- > 0) added.push(await add())
      })
      expect(idsOf(seen)).toEqual(idsOf(added))
    })

    test('walking on after the last id finds nothing, and does not fail', async () => {
      await add()
      expect(await stores.pets.list({ limit: 5, after: 9223372036854775807n })).toEqual({
        pets: [],
        more: false,
      })
    })

    test('animals are there after the store was closed and opened again', async () => {
      const pet = await add({ name: 'Kept', categoryId: -5n, status: 'sold' })
      await stores.close()
      stores = await underTest.open()
      expect(await stores.pets.get(pet.id)).toEqual(pet)
      expect((await add()).id).toBeGreaterThan(pet.id)
    })

    // Directly, without a function of ours in between: the next one comes in the very moment in which the writer is done.
    test('two hundred animals, each added as soon as the one before is there, are all answered', async () => {
      const ids: bigint[] = []
      for (let i = 0; i < 200; i++) {
        const { id } = await stores.pets.create({ name: `Animal ${i}`, categoryId: 1n })
        ids.push(id)
      }
      expect(ids).toEqual(idsOf(await walk(100)))
      expect(new Set(ids).size).toBe(200)
    })

    test('two hundred animals, each added once as soon as the one before is there, are all answered', async () => {
      const outcomes: string[] = []
      for (let i = 0; i < 200; i++) {
        const once = { scope: 'a', key: String(i), at: new Date() }
        const { outcome } = await stores.pets.createOnce({ name: 'Rex', categoryId: 1n }, once)
        outcomes.push(outcome)
      }
      expect(new Set(outcomes)).toEqual(new Set(['created']))
      expect(await walk(100)).toHaveLength(200)
    })

    test('four hundred animals added at once are all answered, each with an id of its own', async () => {
      const added = await Promise.all(
        Array.from({ length: 400 }, (_, i) => add({ name: `Animal ${i}`, categoryId: BigInt(i) })),
      )
      const byId = added.toSorted((a, b) => (a.id < b.id ? -1 : 1))
      expect(await walk(100)).toEqual(byId)
      expect(new Set(idsOf(added)).size).toBe(400)
      expect(added.map(({ categoryId }) => categoryId)).toEqual(added.map((_, i) => BigInt(i)))
    })

    test('a second process sees an animal as soon as it is added', async () => {
      const other = await underTest.open()
      try {
        const pet = await add()
        expect(await other.pets.get(pet.id)).toEqual(pet)
        const theirs = await other.pets.create({ name: 'Theirs', categoryId: 2n })
        expect(await stores.pets.get(theirs.id)).toEqual(theirs)
      } finally {
        await other.close()
      }
    })
  })

  describe(`${database}: a creation under a key of its own`, () => {
    const pet: NewPet = { name: 'Rex', categoryId: 9223372036854775807n, status: 'sold' }
    const once = (changes: Partial<IdempotencyKey> = {}): IdempotencyKey => ({
      scope: 'a',
      key: 'k',
      at: new Date(),
      ...changes,
    })
    function petOf(creation: Creation): Pet {
      if (!('pet' in creation)) throw new Error(`no animal: ${creation.outcome}`)
      return creation.pet
    }
    const dayMs = 24 * 60 * 60 * 1_000
    const count = async () => (await stores.pets.list({ limit: 100 })).pets.length

    test('adds the animal once, and gives it again', async () => {
      const first = await stores.pets.createOnce(pet, once())
      expect(first).toMatchObject({ outcome: 'created', pet })
      const again = await stores.pets.createOnce({ ...pet }, once())
      expect(again).toEqual({ outcome: 'replayed', pet: petOf(first) })
      expect(await count()).toBe(1)
    })

    test.each<[string, Partial<NewPet>]>([
      ['name', { name: 'Max' }],
      ['category', { categoryId: 9223372036854775806n }],
      ['status', { status: 'pending' }],
    ])('tells an animal with another %s from the first', async (_, other) => {
      await stores.pets.createOnce(pet, once())
      expect(await stores.pets.createOnce({ ...pet, ...other }, once())).toEqual({ outcome: 'conflict' })
      expect(await count()).toBe(1)
    })

    test('tells an animal without a status from one with', async () => {
      await stores.pets.createOnce(pet, once())
      const { name, categoryId } = pet
      expect(await stores.pets.createOnce({ name, categoryId }, once())).toEqual({ outcome: 'conflict' })
    })

    test('is one for each scope and each key', async () => {
      for (const changes of [{}, { scope: 'b' }, { key: 'K' }, { key: 'k ' }]) {
        expect((await stores.pets.createOnce(pet, once(changes))).outcome).toBe('created')
      }
      expect(await count()).toBe(4)
    })

    test('is remembered for 24 hours, and not longer', async () => {
      const at = new Date('2026-01-01T00:00:00Z')
      const later = (ms: number) => once({ at: new Date(at.getTime() + ms) })
      await stores.pets.createOnce(pet, once({ at }))
      expect((await stores.pets.createOnce(pet, later(dayMs - 1))).outcome).toBe('replayed')
      expect((await stores.pets.createOnce(pet, later(dayMs))).outcome).toBe('created')
      expect((await stores.pets.createOnce(pet, later(dayMs + 1))).outcome).toBe('replayed')
      expect(await count()).toBe(2)
    })

    test('is forgotten in steps once it has expired', async () => {
      const at = new Date('2026-01-01T00:00:00Z')
      for (let i = 0; i < 5; i++) await stores.pets.createOnce(pet, once({ key: `old ${i}`, at }))
      await stores.pets.createOnce(pet, once({ key: 'new', at: new Date(at.getTime() + dayMs) }))
      const now = new Date(at.getTime() + dayMs)
      expect(await stores.pets.deleteExpiredKeys(now, 3)).toBe(3)
      expect(await stores.pets.deleteExpiredKeys(now, 3)).toBe(2)
      expect(await stores.pets.deleteExpiredKeys(now, 3)).toBe(0)
      expect((await stores.pets.createOnce(pet, once({ key: 'new', at: now }))).outcome).toBe('replayed')
    })

    test('is remembered after the store was closed and opened again', async () => {
      const first = await stores.pets.createOnce(pet, once())
      await stores.close()
      stores = await underTest.open()
      expect(await stores.pets.createOnce(pet, once())).toEqual({ outcome: 'replayed', pet: petOf(first) })
    })

    test('adds one animal when a hundred ask at once, through two processes', async () => {
      const other = await underTest.open()
      try {
        const all = await Promise.all(
          Array.from({ length: 100 }, (_, i) => (i % 2 ? stores : other).pets.createOnce(pet, once())),
        )
        const outcomes = all.map(({ outcome }) => outcome)
        expect(outcomes.filter(outcome => outcome === 'created')).toHaveLength(1)
        expect(outcomes).not.toContain('conflict')
        const ids = all.flatMap(creation => ('pet' in creation ? [creation.pet.id] : []))
        expect(new Set(ids).size).toBe(1)
        expect(await count()).toBe(1)
      } finally {
        await other.close()
      }
    })
  })

  describe(`${database}: keys`, () => {
    const record = (options: Partial<NewApiKey> = {}) =>
      issueApiKey({
        name: 'till',
        permission: 'read-write',
        createdAt: new Date(1_700_000_000_123),
        ...options,
      }).record

    test('a key is found by its hash, with all that was said of it', async () => {
      const plain = record()
      const full = record({
        name: 'Bildschirm 🖥',
        permission: 'read-only',
        expiresAt: new Date(1_900_000_000_456),
      })
      const metrics = record({ permission: 'metrics' })
      for (const key of [plain, full, metrics]) {
        const created = await stores.keys.create(key)
        expect(created).toEqual({ ...key, id: created.id, deprecatedUses: 0n })
        expect(await stores.keys.find(key.hash)).toEqual(created)
      }
    })

    test('an unknown hash is found nowhere', async () => {
      await stores.keys.create(record())
      expect(await stores.keys.find(record().hash)).toBeUndefined()
    })

    test('keys are listed oldest first, revoked ones too', async () => {
      const first = await stores.keys.create(record({ name: 'a' }))
      await stores.keys.create(record({ name: 'b' }))
      await stores.keys.revoke(first.id, new Date(1_700_000_001_000))
      const listed = await stores.keys.list()
      expect(listed.map(({ name }) => name)).toEqual(['a', 'b'])
      expect(listed[0]?.revokedAt).toEqual(new Date(1_700_000_001_000))
    })

    test('the same key is not kept twice', async () => {
      const key = record()
      await stores.keys.create(key)
      const again = await (async () => stores.keys.create(key))().catch((error: unknown) => error)
      expect(again).toBeInstanceOf(Error)
      expect(await stores.keys.list()).toHaveLength(1)
    })

    test('a key is revoked once; one that is not there is not', async () => {
      const { id } = await stores.keys.create(record())
      expect(await stores.keys.revoke(id, new Date(1_000))).toBe(true)
      expect(await stores.keys.revoke(id, new Date(2_000))).toBe(false)
      expect(await stores.keys.revoke(id + 1n, new Date())).toBe(false)
      expect((await stores.keys.list())[0]?.revokedAt).toEqual(new Date(1_000))
    })

    test('a first key is made only where there has never been one', async () => {
      const first = await stores.keys.createFirst(record({ name: 'first' }))
      expect(first?.name).toBe('first')
      expect(await stores.keys.createFirst(record())).toBeUndefined()
      if (first) await stores.keys.revoke(first.id, new Date())
      expect(await stores.keys.createFirst(record())).toBeUndefined()
      expect(await stores.keys.list()).toHaveLength(1)
    })

    test('uses add up, and times never go backwards', async () => {
      const { id, hash } = await stores.keys.create(record())
      const at = (seconds: number) => new Date(1_800_000_000_000 + seconds * 1_000)
      await stores.keys.recordUses([{ id, lastUsedAt: at(5), deprecatedUses: 0 }])
      expect((await stores.keys.find(hash))?.deprecatedLastUsedAt).toBeUndefined()
      await stores.keys.recordUses([
        { id, lastUsedAt: at(9), deprecatedUses: 3, deprecatedLastUsedAt: at(8) },
      ])
      await stores.keys.recordUses([
        { id, lastUsedAt: at(7), deprecatedUses: 2, deprecatedLastUsedAt: at(6) },
      ])
      expect(await stores.keys.find(hash)).toMatchObject({
        lastUsedAt: at(9),
        deprecatedUses: 5n,
        deprecatedLastUsedAt: at(8),
      })
    })

    test('a use of a key that is gone is no error', async () => {
      await stores.keys.recordUses([{ id: 99n, lastUsedAt: new Date(), deprecatedUses: 1 }])
      expect(await stores.keys.list()).toEqual([])
    })

    test('a second process sees a key made or revoked by the first', async () => {
      const other = await underTest.open()
      try {
        const key = await stores.keys.create(record())
        expect(await other.keys.find(key.hash)).toEqual(key)
        await other.keys.revoke(key.id, new Date())
        expect((await stores.keys.find(key.hash))?.revokedAt).toBeDefined()
      } finally {
        await other.close()
      }
    })
  })
}
