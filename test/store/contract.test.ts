import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { issueApiKey, type NewApiKey } from '../../src/api-key.ts'
import { IdsExhausted, StoreError } from '../../src/errors.ts'
import { int64Max, int64Min } from '../../src/int64.ts'
import { type NewPet, type Pet, type PetStatus, petName, petStatus } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import { batchPetsMax, type Change, type Creation, type ImportedPet, type Stores } from '../../src/store-contract.ts'
import { engines, newTestDatabase } from '../support/engines.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { batches, closing, failureOf, rex } from './stores.ts'

const statuses = petStatus.schema['enum'] as readonly PetStatus[]
const names = [
  ...['  Rex ', 'Zoë', 'Zoe\u0308', 'كلب', '🐕‍🦺', "'); DROP TABLE pets;--", '\u2028a', '%_\\"\'`'],
  // As in PostgreSQL's arrays, and the longest.
  ...['NULL', '{}', '{a,b}', '"quoted","list"', '🐕'.repeat(1_000)],
]
const numbered = (id: bigint): Pet => ({ id, name: `Nr. ${id}`, categoryId: 2n ** 62n + id / 2n, status: 'sold' })
const many = (count: number, first = 1n) => Array.from({ length: count }, (_, i) => numbered(first + BigInt(i)))
const idsOf = (pets: readonly Pet[]) => pets.map(({ id }) => id)
const namesOf = (pets: readonly NewPet[]) => pets.map(({ name }) => name)

/** U+0001 to U+007F. */
const everyControl = String.fromCharCode(...Array.from({ length: 0x7f }, (_, i) => i + 1))

/** Everything that both engines promise. */
describe.each(engines)('%s', engine => {
  let database: TestDatabase
  let stores: Stores
  const open = async () => openStores(database.url, { create: true })
  beforeEach(async () => {
    database = await newTestDatabase(engine)
    stores = await open()
  })
  afterEach(async () => {
    await stores.close()
    await database[Symbol.asyncDispose]()
  })

  async function reopen(): Promise<void> {
    await stores.close()
    stores = await open()
  }

  const add = async (pet: Partial<NewPet> = {}) => stores.pets.create({ ...rex, ...pet })

  /** Makes the next animal get an id above this one. The store must be empty. */
  async function setLastId(id: bigint): Promise<void> {
    await stores.transfer.load(batches([numbered(id)]), 'keep')
    await stores.pets.remove(id)
  }

  async function walk(limit: number, status?: PetStatus): Promise<Pet[]> {
    const seen: Pet[] = []
    for (;;) {
      const page = await stores.pets.list({ limit, after: seen.at(-1)?.id ?? 0n, ...(status && { status }) })
      // Only the first page may be empty.
      expect(page.pets.length + (seen.length === 0 ? 1 : 0)).toBeGreaterThan(0)
      seen.push(...page.pets)
      if (!page.more) return seen
    }
  }

  test('an animal comes back exactly as it was added', async () => {
    const text = fc.string({ unit: 'grapheme' }).filter(name => petName.read(name) !== undefined)
    const name = fc.oneof(fc.constantFrom(...names), text)
    const categoryId = fc.bigInt({ min: int64Min, max: int64Max })
    const fields = { name, categoryId, status: fc.constantFrom(...statuses) }
    const pet = fc.record(fields, { requiredKeys: ['name', 'categoryId'] })
    const extremes = [int64Max, int64Min, 2n ** 53n + 1n, -(2n ** 53n) - 1n, 0n]
    await fc.assert(
      fc.asyncProperty(pet, async sent => {
        const created = await stores.pets.create(sent)
        expect(created).toEqual({ ...sent, id: created.id })
        expect(await stores.pets.get(created.id)).toEqual(created)
        const page = await stores.pets.list({ limit: 2, after: created.id - 2n })
        expect(page.pets.at(-1)).toEqual(created)
      }),
      { numRuns: 50, examples: extremes.map(categoryId => [{ ...rex, categoryId }]) },
    )
    await Promise.all(names.map(name => add({ name })))
    expect(namesOf(await walk(30)).slice(-names.length)).toEqual(names)
  })

  test('gets at the same moment find each their animal, or none', async () => {
    const [one, two] = [await add({ name: 'one' }), await add({ name: 'two' })]
    const gets = [two.id, one.id, int64Max, two.id].map(async id => stores.pets.get(id))
    expect(await Promise.all(gets)).toEqual([two, one, undefined, two])
  })

  test('walking with any limit and any status visits every animal once, in ascending order', async () => {
    const added: Pet[] = []
    for (let i = 0; i < 47; i++) added.push(await add([...statuses.map(status => ({ status })), {}][(i * 7) % 4]))
    expect(idsOf(added)).toEqual(idsOf(added).toSorted((a, b) => (a < b ? -1 : 1)))
    expect(await stores.pets.list({ limit: 5, after: int64Max })).toEqual({ pets: [], more: false })
    for (const limit of [1, 2, 7, 46, 47, 48, 100]) {
      expect(idsOf(await walk(limit))).toEqual(idsOf(added))
      for (const status of statuses) {
        expect(idsOf(await walk(limit, status))).toEqual(idsOf(added.filter(pet => pet.status === status)))
      }
    }
  })

  test('the last ids are assigned even if more animals are added at once', async () => {
    await setLastId(int64Max - 3n)
    const once = { scope: 'a', key: 'k', at: new Date() }
    const createOnce = () => stores.pets.createOnce(rex, once)
    const all = await Promise.all([add, add, add, add, createOnce].map(create => failureOf(() => create())))
    expect(all.filter(result => result instanceof IdsExhausted)).toHaveLength(2)
    expect(idsOf(await walk(9))).toEqual([int64Max - 2n, int64Max - 1n, int64Max])
  })

  const pet: NewPet = { name: 'Rex', categoryId: int64Max, status: 'sold' }
  const dayMs = 24 * 60 * 60 * 1_000
  const start = new Date('2026-01-01T00:00:00Z')
  const later = (ms: number) => new Date(start.getTime() + ms)
  const createOnce = async (sent = pet, key = {}): Promise<Creation> =>
    stores.pets.createOnce(sent, { scope: 'a', key: 'k', at: start, ...key })
  const count = async () => (await walk(100)).length

  test('a repeated creation returns the first animal; animals and keys are there after a restart', async () => {
    const first = await createOnce()
    expect(first).toMatchObject({ outcome: 'created', pet })
    expect<unknown>(await createOnce()).toEqual({ ...first, outcome: 'replayed' })
    await reopen()
    expect<unknown>(await createOnce({ ...pet })).toEqual({ ...first, outcome: 'replayed' })
    const next = await add()
    expect(await walk(100)).toEqual([{ ...pet, id: next.id - 1n }, next])
  })

  test('the same Idempotency-Key for another animal is a conflict', async () => {
    await createOnce()
    const { status: _, ...withoutStatus } = pet
    for (const other of [{ ...pet, name: 'Max' }, { ...pet, categoryId: int64Max - 1n }, withoutStatus]) {
      expect(await createOnce(other)).toEqual({ outcome: 'conflict' })
    }
    expect(await count()).toBe(1)
  })

  test('another scope or another Idempotency-Key is another creation', async () => {
    for (const key of [{}, { scope: 'b' }, { key: 'K' }, { key: 'k ' }])
      expect((await createOnce(pet, key)).outcome).toBe('created')
    expect(await count()).toBe(4)
  })

  test('an Idempotency-Key is remembered for exactly 24 hours', async () => {
    await createOnce()
    const outcomes: string[] = []
    for (const ms of [dayMs - 1, dayMs, dayMs + 1]) outcomes.push((await createOnce(pet, { at: later(ms) })).outcome)
    expect(outcomes).toEqual(['replayed', 'created', 'replayed'])
    expect(await count()).toBe(2)
  })

  test('expired Idempotency-Keys are deleted in steps', async () => {
    for (let i = 0; i < 5; i++) await createOnce(pet, { key: `old ${i}` })
    await createOnce(pet, { key: 'new', at: later(dayMs) })
    for (const deleted of [3, 2, 0])
      expect(await stores.pets.deleteExpiredIdempotencyKeys(later(dayMs), 3)).toBe(deleted)
    expect((await createOnce(pet, { key: 'new', at: later(dayMs) })).outcome).toBe('replayed')
  })

  test('a hundred requests at once through two processes create one animal', async () => {
    await using other = closing(await open())
    const key = { scope: 'a', key: 'k', at: start }
    const sent = Array.from({ length: 100 }, (_, i) => (i % 2 ? stores : other).pets.createOnce(pet, key))
    const all = await Promise.all(sent)
    const [{ outcome: _, ...created }] = all.filter(({ outcome }) => outcome === 'created') as [Creation]
    const replayed = all.filter(({ outcome }) => outcome === 'replayed')
    expect(replayed).toEqual(Array(99).fill({ ...created, outcome: 'replayed' }))
    expect(await count()).toBe(1)
  })

  test('Idempotency-Keys of one batch, in any order, behave as if sent alone', async () => {
    const send = (sent: NewPet, key: string) => createOnce(sent, { key })
    const sent = [add(), send(pet, 'a'), send(rex, 'a'), send(pet, 'b'), send(pet, 'a')] as const
    const [plain, ...once] = await Promise.all(sent)
    const outcomes = once.map(({ outcome }) => outcome).join(' ')
    expect(outcomes).toBe('created conflict created replayed')
    expect(await count()).toBe(3)
    const created = once.flatMap(creation => ('pet' in creation ? creation.pet : []))
    for (const pet of [plain, ...created]) expect(await stores.pets.get(pet.id)).toEqual(pet)
  })

  const newKey = (options: Partial<NewApiKey> = {}) =>
    issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date(1_700_000_000_123), ...options }).record

  test('a key is found by its hash, with all its fields', async () => {
    const full = { name: 'Bildschirm 🖥', permission: 'read-only', expiresAt: new Date(1_900_000_000_456) } as const
    for (const key of [newKey(), newKey(full), newKey({ permission: 'metrics' }), newKey({ permission: 'manage' })]) {
      const created = await stores.keys.create(key)
      expect(created).toEqual({ ...key, id: created.id, deprecatedUses: 0n })
      expect(await stores.keys.find(key.hash)).toEqual(created)
    }
    expect(await stores.keys.find(newKey().hash)).toBeUndefined()
  })

  test('keys are listed oldest first, each one is stored once, and revoked once', async () => {
    const first = newKey({ name: 'a' })
    const { id } = await stores.keys.create(first)
    await stores.keys.create(newKey({ name: 'b' }))
    expect(await failureOf(() => stores.keys.create(first))).toBeInstanceOf(Error)
    expect(await stores.keys.revoke(id, new Date(1_000))).toBe(true)
    expect(await stores.keys.revoke(id, new Date(2_000))).toBe(false)
    expect(await stores.keys.revoke(id + 99n, new Date())).toBe(false)
    const listed = (await stores.keys.list()).map(({ name, revokedAt }) => [name, revokedAt?.getTime()])
    expect(listed.flat()).toEqual(['a', 1_000, 'b', undefined])
  })

  test('a first key is created only if the store has never had one', async () => {
    const first = await stores.keys.createFirst(newKey({ name: 'first' }))
    expect(first?.name).toBe('first')
    expect(await stores.keys.createFirst(newKey())).toBeUndefined()
    await stores.keys.revoke(first?.id ?? 0n, new Date())
    expect(await stores.keys.createFirst(newKey())).toBeUndefined()
    expect(await stores.keys.list()).toHaveLength(1)
  })

  test('uses add up, and times never go backwards', async () => {
    const { id, hash } = await stores.keys.create(newKey())
    const at = (seconds: number) => new Date(1_800_000_000_000 + seconds * 1_000)
    await stores.keys.recordUses([{ id, lastUsedAt: at(5), deprecatedUses: 0 }])
    expect((await stores.keys.find(hash))?.deprecatedLastUsedAt).toBeUndefined()
    const unknown = { id: 99n, lastUsedAt: at(0), deprecatedUses: 1 }
    for (const [used, deprecatedUses] of [[9, 3] as const, [7, 2] as const]) {
      await stores.keys.recordUses([unknown, { id, lastUsedAt: at(used), deprecatedUses }])
    }
    await stores.keys.recordUses([{ id, lastUsedAt: at(10), deprecatedUses: 0 }])
    const used = { lastUsedAt: at(10), deprecatedUses: 5n, deprecatedLastUsedAt: at(9) }
    expect(await stores.keys.list()).toMatchObject([{ id, ...used }])
  })

  const everything = async () => (await Array.fromAsync(stores.transfer.read())).flat()

  const outcomesOf = (changes: readonly Change[]) => changes.map(({ outcome }) => outcome).join(' ')

  test('a change sets what is given and nothing else', async () => {
    const expected = [await add()]
    const [name, categoryId] = [names.at(-1) as string, int64Min]
    for (const before of [rex, { ...rex, status: 'sold' } as const]) {
      for (const given of [{}, { name }, { categoryId }, { name, categoryId }]) {
        for (const status of [undefined, null, 'pending'] as const) {
          const { status: statusBefore, ...pet } = await add(before)
          const statusAfter = status === undefined ? statusBefore : status
          const after = { ...pet, ...given, ...(statusAfter && { status: statusAfter }) }
          expect(await stores.pets.update(pet.id, { ...given, status })).toEqual({ outcome: 'changed', pet: after })
          expected.push(after)
        }
      }
    }
    expect(await everything()).toEqual(expected)
    for (const status of statuses) expect(await walk(9, status)).toEqual(expected.filter(pet => pet.status === status))
  })

  test('with a condition, an animal is changed or removed only if it has this status', async () => {
    const expected: Pet[] = []
    for (const status of [...statuses, undefined]) {
      for (const ifStatus of [...statuses, undefined]) {
        const [kept, removed] = [await add(status && { status }), await add(status && { status })]
        const outcome = ifStatus === undefined || ifStatus === status ? 'changed' : 'status-differs'
        const after = outcome === 'changed' ? { ...kept, name: 'Mia' } : kept
        expect(await stores.pets.update(kept.id, { name: 'Mia' }, ifStatus)).toEqual({ outcome, pet: after })
        expect(await stores.pets.remove(removed.id, ifStatus)).toEqual({ outcome, pet: removed })
        expected.push(after, ...(outcome === 'changed' ? [] : [removed]))
      }
    }
    expect(await everything()).toEqual(expected)
  })

  test('an id without an animal changes nothing, and neighbours of 2^53 and 2^63 are different animals', async () => {
    const gone = 2n ** 53n + 1n
    const kept = [gone - 2n, gone - 1n, gone + 1n, int64Max - 1n, int64Max]
    await stores.transfer.load(
      batches([gone - 2n, gone - 1n, gone, gone + 1n, int64Max - 1n, int64Max].map(numbered)),
      'keep',
    )
    expect(await stores.pets.remove(gone)).toEqual({ outcome: 'changed', pet: numbered(gone) })
    for (const id of [0n, -1n, 1n, int64Min, gone]) {
      const changes = [await stores.pets.update(id, { name: 'Mia' }), await stores.pets.remove(id, 'sold')]
      expect(changes).toEqual(Array(2).fill({ outcome: 'no-such-pet' }))
    }
    for (const id of kept) await stores.pets.update(id, { name: `changed ${id}` })
    expect(await everything()).toEqual(kept.map(id => ({ ...numbered(id), name: `changed ${id}` })))
    await stores.pets.remove(int64Max)
    expect(await failureOf(add)).toBeInstanceOf(IdsExhausted)
  })

  test('values that the database refuses fail alone', async () => {
    const pets = [await add(), await add(), await add()]
    const [first, second, third] = idsOf(pets) as [bigint, bigint, bigint]
    const [empty, long, unknown, ...others] = await Promise.all([
      failureOf(() => stores.pets.update(first, { name: '' })),
      failureOf(() => stores.pets.update(first, { name: '🐕'.repeat(1_001) })),
      failureOf(() => stores.pets.update(first, { status: 'lost' as PetStatus })),
      stores.pets.update(second, { name: 'Mia' }),
      stores.pets.remove(third),
    ])
    for (const refused of [empty, long, unknown]) expect(String(refused)).toMatch(/check constraint/i)
    expect(outcomesOf(others)).toBe('changed changed')
    expect(await everything()).toEqual([pets[0] as Pet, { id: second, ...rex, name: 'Mia' }])
  })

  test('changes of one animal at the same moment take effect in order, each on what the ones before have left', async () => {
    const { id } = await add({ status: 'available' })
    const { pets } = stores
    const changes = await Promise.all([
      pets.update(id, { status: 'pending' }, 'available'),
      pets.update(id, { name: 'Mia' }, 'available'),
      pets.update(id, { categoryId: 7n }, 'pending'),
      pets.remove(id, 'sold'),
      pets.update(id, { status: null }),
      pets.remove(id),
      pets.update(id, { name: 'Tom' }),
      pets.remove(id),
    ])
    const outcomes = outcomesOf(changes).split(' ')
    expect(outcomes).toEqual([
      ...['changed', 'status-differs', 'changed', 'status-differs'],
      ...['changed', 'changed', 'no-such-pet', 'no-such-pet'],
    ])
    const last = { id, name: 'Rex', categoryId: 7n }
    expect(changes.slice(3, 6)).toMatchObject([{ pet: { ...last, status: 'pending' } }, { pet: last }, { pet: last }])
    expect(changes[4]).not.toHaveProperty('pet.status')
  })

  test('of a hundred changes from available to pending at once through two processes, one succeeds', async () => {
    await using other = closing(await open())
    const { id } = await add({ status: 'available' })
    const sent = Array.from({ length: 100 }, (_, i) =>
      (i % 2 ? stores : other).pets.update(id, { name: `${i}`, status: 'pending' }, 'available'),
    )
    const changes = await Promise.all(sent)
    const pet = await stores.pets.get(id)
    expect(changes.filter(({ outcome }) => outcome === 'changed')).toEqual([{ outcome: 'changed', pet: pet as Pet }])
    expect(changes.filter(({ outcome }) => outcome === 'status-differs')).toHaveLength(99)
  })

  test('the id of a removed animal is not assigned again', async () => {
    const [first, second] = [await add(), await add()]
    for (const { id } of [second, first]) await stores.pets.remove(id)
    expect(await everything()).toEqual([])
    await reopen()
    const next = await add()
    expect(next.id).toBe(second.id + 1n)
    await stores.pets.remove(next.id)
    expect((await add()).id).toBe(next.id + 1n)
  })

  test('a repeated creation adds nothing after a change or a removal, and shows the animal as it was created', async () => {
    const create = async (key: string) => stores.pets.createOnce(rex, { scope: 'till', key, at: new Date() })
    const created = [await create('changed'), await create('removed')] as Extract<Creation, { pet: Pet }>[]
    const [changed, removed] = created.map(({ pet }) => pet.id) as [bigint, bigint]
    await stores.pets.update(changed, { name: 'Mia' })
    await stores.pets.remove(removed)
    expect(await create('changed')).toEqual({ outcome: 'replayed', pet: { id: changed, ...rex } })
    expect(await create('removed')).toEqual({ outcome: 'replayed', pet: { id: removed, ...rex } })
    expect(await everything()).toEqual([{ id: changed, ...rex, name: 'Mia' }])
  })

  test('an export has animals in bounded batches as of one moment, and others can add meanwhile', async () => {
    const pets = many(2 * batchPetsMax + 1).map(pet => ({ ...pet, name: pet.name.padEnd(150, '.') }))
    await stores.transfer.load(batches(pets), 'keep')
    const seen: Pet[] = []
    for await (const some of stores.transfer.read()) {
      if (seen.length === 0) await add({ name: 'too late' })
      expect(some.length).toBeWithin(1, batchPetsMax + 1)
      seen.push(...some)
    }
    expect(seen).toEqual(pets)
    expect((await everything()).at(-1)?.name).toBe('too late')
  })

  test('an export can be stopped in the middle', async () => {
    await stores.transfer.load(batches(many(batchPetsMax + 1)), 'keep')
    for (let i = 0; i < 5; i++) for await (const _ of stores.transfer.read()) break
    await add()
    expect(await stores.transfer.load(batches([numbered(1n)]), 'new')).toBe(1n)
  })

  const failureOfLoad = (given: AsyncIterable<readonly ImportedPet[]>, ids: 'keep' | 'new') =>
    failureOf(() => stores.transfer.load(given, ids))

  test('imported with their ids, animals come back exactly, and later ones have higher ids', async () => {
    const pets: Pet[] = [
      { id: 3n, name: '  spaces ', categoryId: int64Min },
      { id: 4n, name: 'e\u0301 \u00e9 🐕‍🦺 \u202e\u2028\u0001"\\', categoryId: 0n, status: 'available' },
      { id: 5n, name: `${everyControl}\\v\\\\v\\N,"status":"\\N"`, categoryId: 1n },
      { id: 2n ** 53n + 1n, name: 'x'.repeat(1_000), categoryId: int64Max, status: 'pending' },
      { id: int64Max - 1_000_000_000n, name: "'); DROP", categoryId: 2n ** 53n + 1n, status: 'sold' },
    ]
    const given = batches(pets.slice(0, 1), [], pets.slice(1))
    expect(await stores.transfer.load(given, 'keep')).toBe(5n)
    await reopen()
    expect(await everything()).toEqual(pets)
    expect((await add()).id).toBe(int64Max - 999_999_999n)
  })

  test('with their ids, imported animals are refused if another one is added meanwhile', async () => {
    async function* meanwhile() {
      yield many(3)
      await add()
      yield many(3, 4n)
    }
    expect(await failureOfLoad(meanwhile(), 'keep')).toBeInstanceOf(StoreError)
    expect(await everything()).toHaveLength(1)
  })

  test('an import can keep ids after all animals were removed, and none is assigned again', async () => {
    await stores.transfer.load(batches([numbered(50n)]), 'keep')
    await stores.pets.remove(50n)
    await stores.transfer.load(batches([numbered(7n)]), 'keep')
    expect([idsOf(await everything()), (await add()).id]).toEqual([[7n], 51n])
  })

  test('an import is refused if too few ids are left, and nothing changes', async () => {
    await setLastId(int64Max - 1n)
    expect(String(await failureOfLoad(batches([rex, rex]), 'new'))).toContain('StoreError: Cannot assign 2 new ids: ')
    expect(await everything()).toEqual([])
    expect(await stores.transfer.load(batches([rex]), 'new')).toBe(1n)
    expect(idsOf(await everything())).toEqual([int64Max])
  })

  test('new ids of an import are higher than all before, in order; ids of the source are ignored', async () => {
    const first = await add()
    const given: ImportedPet[] = [numbered(7n), numbered(7n), numbered(1n), rex, numbered(int64Max)]
    const count = await stores.transfer.load(batches(given, many(batchPetsMax)), 'new')
    expect(count).toBe(BigInt(5 + batchPetsMax))
    const [before, ...after] = await everything()
    expect(before).toEqual(first)
    expect(namesOf(after)).toEqual(namesOf([...given, ...many(batchPetsMax)]))
    expect((await add()).id).toBeGreaterThan(after.at(-1)?.id ?? 0n)
  })

  test('if the source of an import fails, nothing is added', async () => {
    const error = new Error('line 3 is bad')
    async function* failing() {
      yield many(batchPetsMax)
      throw error
    }
    expect(await failureOfLoad(failing(), 'new')).toBe(error)
    expect(await everything()).toEqual([])
    expect((await add()).id).toBeGreaterThan(0n)
  })

  test('a slow source of an import blocks no writer, and no reader sees a part of the import', async () => {
    const seen: string[][] = []
    async function* slow() {
      for (let i = 0; i < 3; i++) {
        yield [numbered(1n)]
        await add({ name: 'meanwhile' })
        seen.push(namesOf(await walk(9)))
      }
    }
    expect(await stores.transfer.load(slow(), 'new')).toBe(3n)
    expect(seen).toEqual([1, 2, 3].map(added => Array(added).fill('meanwhile')))
    expect(namesOf(await everything())).toEqual([...Array(3).fill('meanwhile'), ...Array(3).fill('Nr. 1')])
  })
})
