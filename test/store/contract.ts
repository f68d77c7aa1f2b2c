import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import fc from 'fast-check'
import { issueApiKey, type NewApiKey } from '../../src/api-key.ts'
import { IdsExhausted, SetupError } from '../../src/errors.ts'
import { int64Max, int64Min } from '../../src/int64.ts'
import { type NewPet, type Pet, type PetStatus, petStatus } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import { batchPetsMax, type Creation, type ImportedPet, type Stores } from '../../src/store.ts'
import { type AnyDatabase, newTestDatabase, type StoreKind } from '../support/service.ts'

const statuses = petStatus.schema['enum'] as readonly PetStatus[]
const rex: NewPet = { name: 'Rex', categoryId: 1n }
const names = ['  Rex ', 'Zoë', 'Zoe\u0308', 'كلب', '🐕‍🦺', "'); DROP TABLE pets;--", '\u2028', '%_\\"\'`']
const idsOf = (pets: readonly Pet[]) => pets.map(({ id }) => id)
const failureOf = (work: () => unknown) =>
  (async () => work())().then(
    () => 'no failure',
    (error: unknown) => error,
  )

/** Everything that both engines promise. */
export function describeStoreContract(engine: string, kind: StoreKind): void {
  let database: AnyDatabase
  let stores: Stores
  const open = async () => openStores(database.url, { create: true })
  beforeEach(async () => {
    database = await newTestDatabase(kind)
    stores = await open()
  })
  afterEach(async () => {
    await stores.close()
    await database[Symbol.asyncDispose]()
  })
  const setup: Setup = {
    stores: () => stores,
    async reopen() {
      await stores.close()
      stores = await open()
    },
    async openAnother() {
      const other = await open()
      return Object.assign(other, { [Symbol.asyncDispose]: async () => other.close() })
    },
    setLastId: id => database.setLastId(id),
  }
  describe(`${engine}: animals`, () => describePets(setup))
  describe(`${engine}: idempotency keys`, () => describeIdempotencyKeys(setup))
  describe(`${engine}: API keys`, () => describeApiKeys(setup))
  describe(`${engine}: export`, () => describeExport(setup))
  describe(`${engine}: import`, () => describeImport(setup))
}

interface Setup {
  stores(): Stores
  /** Closes the store, and opens it again. */
  reopen(): Promise<void>
  openAnother(): Promise<Stores & AsyncDisposable>
  setLastId(id: bigint): Promise<void>
}

function describePets({ stores, reopen, openAnother, setLastId }: Setup): void {
  const add = async (pet: Partial<NewPet> = {}) => stores().pets.create({ ...rex, ...pet })

  async function walk(limit: number, status?: PetStatus, between = async () => {}): Promise<Pet[]> {
    const seen: Pet[] = []
    for (;;) {
      const after = seen.at(-1)?.id ?? 0n
      const page = await stores().pets.list({ limit, after, ...(status && { status }) })
      seen.push(...page.pets)
      if (!page.more) return seen
      await between()
    }
  }

  test('an empty store lists and finds nothing', async () => {
    expect(await stores().pets.list({ limit: 20 })).toEqual({ pets: [], more: false })
    expect(await stores().pets.get(1n)).toBeUndefined()
  })

  test('an animal comes back exactly as it was added', async () => {
    const pet = fc.record(
      {
        name: fc.oneof(
          fc.constantFrom(...names),
          fc.string({ unit: 'grapheme', minLength: 1 }).filter(name => !name.includes('\0')),
        ),
        categoryId: fc.bigInt({ min: int64Min, max: int64Max }),
        status: fc.constantFrom(...statuses),
      },
      { requiredKeys: ['name', 'categoryId'] },
    )
    const extremes = [int64Max, int64Min, 2n ** 53n + 1n, -(2n ** 53n) - 1n, 0n]
    await fc.assert(
      fc.asyncProperty(pet, async sent => {
        const created = await stores().pets.create(sent)
        expect(created).toEqual({ ...sent, id: created.id })
        expect(await stores().pets.get(created.id)).toEqual(created)
      }),
      { numRuns: 50, examples: extremes.map(categoryId => [{ ...rex, categoryId }]) },
    )
    for (const name of names) await add({ name })
    expect((await walk(30)).slice(-names.length).map(({ name }) => name)).toEqual(names)
  })

  test('an animal without a status has none, and no filter finds it', async () => {
    const { id } = await add()
    expect(await stores().pets.get(id)).toEqual({ id, ...rex })
    for (const status of statuses) {
      expect((await stores().pets.list({ limit: 20, status })).pets).toEqual([])
    }
  })

  test.each([int64Max, int64Min, 0n, -1n])('no animal has id %p', async id => {
    await add()
    expect(await stores().pets.get(id)).toBeUndefined()
  })

  test('a list says whether more animals follow', async () => {
    for (let i = 0; i < 5; i++) await add()
    expect((await stores().pets.list({ limit: 4 })).more).toBe(true)
    expect((await stores().pets.list({ limit: 5 })).more).toBe(false)
    expect((await stores().pets.list({ limit: 6 })).pets).toHaveLength(5)
    expect(await stores().pets.list({ limit: 5, after: int64Max })).toEqual({ pets: [], more: false })
  })

  test('walking with any limit and any status visits every animal once, in ascending order', async () => {
    const added: Pet[] = []
    for (let i = 0; i < 47; i++) {
      const status = [...statuses, undefined][(i * 7) % 4]
      added.push(await add(status ? { status } : {}))
    }
    expect(idsOf(added)).toEqual(idsOf(added).toSorted((a, b) => (a < b ? -1 : 1)))
    for (const limit of [1, 2, 7, 46, 47, 48, 100]) {
      expect(idsOf(await walk(limit))).toEqual(idsOf(added))
      for (const status of statuses) {
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

  test('animals are there after the store was closed and opened again', async () => {
    const pet = await add({ name: 'Stored', categoryId: -5n, status: 'sold' })
    await reopen()
    expect(await stores().pets.get(pet.id)).toEqual(pet)
    expect((await add()).id).toBeGreaterThan(pet.id)
  })

  // Each write arrives in the moment in which the queue becomes empty.
  test('animals that are added one after the other are all answered', async () => {
    const ids: bigint[] = []
    for (let i = 0; i < 200; i++) {
      const { id } = await stores().pets.create(rex)
      ids.push(id)
      await stores().pets.createOnce(rex, { scope: 'a', key: String(i), at: new Date() })
    }
    expect(new Set(ids).size).toBe(200)
    expect(await walk(100)).toHaveLength(400)
  })

  test('animals that are added at once are all answered, each with its own id', async () => {
    const added = await Promise.all(Array.from({ length: 400 }, (_, i) => add({ categoryId: BigInt(i) })))
    expect(await walk(100)).toEqual(added.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
    expect(new Set(idsOf(added)).size).toBe(400)
    expect(added.map(({ categoryId }) => categoryId)).toEqual(added.map((_, i) => BigInt(i)))
  })

  test('the last ids are assigned even if more animals are added at once', async () => {
    await setLastId(int64Max - 3n)
    const once = { scope: 'a', key: 'k', at: new Date() }
    const all = await Promise.all([
      ...[add(), add(), add(), add()].map(adding => adding.catch((error: unknown) => error)),
      failureOf(() => stores().pets.createOnce(rex, once)),
    ])
    expect(all.filter(result => result instanceof IdsExhausted)).toHaveLength(2)
    expect(idsOf(await walk(9))).toEqual([int64Max - 2n, int64Max - 1n, int64Max])
  })

  test('a second process sees an animal as soon as it is added', async () => {
    await using other = await openAnother()
    const pet = await add()
    expect(await other.pets.get(pet.id)).toEqual(pet)
    const theirs = await other.pets.create({ name: 'Theirs', categoryId: 2n })
    expect(await stores().pets.get(theirs.id)).toEqual(theirs)
  })
}

function describeIdempotencyKeys({ stores, reopen, openAnother }: Setup): void {
  const pet: NewPet = { name: 'Rex', categoryId: int64Max, status: 'sold' }
  const dayMs = 24 * 60 * 60 * 1_000
  const start = new Date('2026-01-01T00:00:00Z')
  const later = (ms: number) => new Date(start.getTime() + ms)
  const createOnce = async (sent = pet, key = {}): Promise<Creation> =>
    stores().pets.createOnce(sent, { scope: 'a', key: 'k', at: start, ...key })
  const count = async () => (await stores().pets.list({ limit: 100 })).pets.length

  test('a repeated creation returns the first animal, also after a restart', async () => {
    const first = await createOnce()
    expect(first).toMatchObject({ outcome: 'created', pet })
    expect<unknown>(await createOnce()).toEqual({ ...first, outcome: 'replayed' })
    await reopen()
    expect<unknown>(await createOnce({ ...pet })).toEqual({ ...first, outcome: 'replayed' })
    expect(await count()).toBe(1)
  })

  test.each<[string, NewPet]>([
    ['another name', { ...pet, name: 'Max' }],
    ['another category', { ...pet, categoryId: int64Max - 1n }],
    ['another status', { ...pet, status: 'pending' }],
    ['no status', { name: pet.name, categoryId: pet.categoryId }],
  ])('the same key with %s is a conflict', async (_, other) => {
    await createOnce()
    expect(await createOnce(other)).toEqual({ outcome: 'conflict' })
    expect(await count()).toBe(1)
  })

  test('another scope or another key is another creation', async () => {
    for (const key of [{}, { scope: 'b' }, { key: 'K' }, { key: 'k ' }]) {
      expect((await createOnce(pet, key)).outcome).toBe('created')
    }
    expect(await count()).toBe(4)
  })

  test('a key is remembered for exactly 24 hours', async () => {
    await createOnce()
    expect((await createOnce(pet, { at: later(dayMs - 1) })).outcome).toBe('replayed')
    expect((await createOnce(pet, { at: later(dayMs) })).outcome).toBe('created')
    expect((await createOnce(pet, { at: later(dayMs + 1) })).outcome).toBe('replayed')
    expect(await count()).toBe(2)
  })

  test('expired keys are deleted in steps', async () => {
    for (let i = 0; i < 5; i++) await createOnce(pet, { key: `old ${i}` })
    await createOnce(pet, { key: 'new', at: later(dayMs) })
    for (const deleted of [3, 2, 0]) {
      expect(await stores().pets.deleteExpiredKeys(later(dayMs), 3)).toBe(deleted)
    }
    expect((await createOnce(pet, { key: 'new', at: later(dayMs) })).outcome).toBe('replayed')
  })

  test('a hundred requests at once through two processes create one animal', async () => {
    await using other = await openAnother()
    const key = { scope: 'a', key: 'k', at: start }
    const all = await Promise.all(
      Array.from({ length: 100 }, (_, i) => (i % 2 ? stores() : other).pets.createOnce(pet, key)),
    )
    const [{ outcome: _, ...created }] = all.filter(({ outcome }) => outcome === 'created') as [Creation]
    expect(all.filter(({ outcome }) => outcome === 'replayed')).toEqual(
      Array.from({ length: 99 }, () => ({ ...created, outcome: 'replayed' }) as Creation),
    )
    expect(await count()).toBe(1)
  })

  test('keys of one batch, in any order, behave as if sent alone', async () => {
    const send = (sent: NewPet, key: string, at = start) => createOnce(sent, { key, at })
    const all = await Promise.all([
      stores().pets.create(rex),
      send(pet, 'a'),
      send(rex, 'a'),
      send(pet, 'b'),
      send(pet, 'a'),
      send(pet, 'a', later(dayMs)),
      send(pet, 'a', later(dayMs + 1)),
    ])
    expect(all.slice(1).map(creation => 'outcome' in creation && creation.outcome)).toEqual([
      'created',
      'conflict',
      'created',
      'replayed',
      'created',
      'replayed',
    ])
    expect(await count()).toBe(4)
    for (const creation of all) {
      const created = 'outcome' in creation ? 'pet' in creation && creation.pet : creation
      if (created) expect(await stores().pets.get(created.id)).toEqual(created)
    }
  })
}

function describeApiKeys({ stores, openAnother }: Setup): void {
  const record = (options: Partial<NewApiKey> = {}) =>
    issueApiKey({
      name: 'till',
      permission: 'read-write',
      createdAt: new Date(1_700_000_000_123),
      ...options,
    }).record

  test.each<[string, Partial<NewApiKey>]>([
    ['plain', {}],
    ['full', { name: 'Bildschirm 🖥', permission: 'read-only', expiresAt: new Date(1_900_000_000_456) }],
    ['metrics', { permission: 'metrics' }],
  ])('a %s key is found by its hash, with all its fields', async (_, options) => {
    const key = record(options)
    const created = await stores().keys.create(key)
    expect(created).toEqual({ ...key, id: created.id, deprecatedUses: 0n })
    expect(await stores().keys.find(key.hash)).toEqual(created)
    expect(await stores().keys.find(record().hash)).toBeUndefined()
  })

  test('keys are listed oldest first, including revoked ones', async () => {
    const first = await stores().keys.create(record({ name: 'a' }))
    await stores().keys.create(record({ name: 'b' }))
    await stores().keys.revoke(first.id, new Date(1_700_000_001_000))
    const listed = await stores().keys.list()
    expect(listed.map(({ name }) => name)).toEqual(['a', 'b'])
    expect(listed[0]?.revokedAt).toEqual(new Date(1_700_000_001_000))
  })

  test('the same key is not stored twice', async () => {
    const key = record()
    await stores().keys.create(key)
    expect(await failureOf(() => stores().keys.create(key))).toBeInstanceOf(Error)
    expect(await stores().keys.list()).toHaveLength(1)
  })

  test('a key is revoked only once, and only if it exists', async () => {
    const { id } = await stores().keys.create(record())
    expect(await stores().keys.revoke(id, new Date(1_000))).toBe(true)
    expect(await stores().keys.revoke(id, new Date(2_000))).toBe(false)
    expect(await stores().keys.revoke(id + 1n, new Date())).toBe(false)
    expect((await stores().keys.list())[0]?.revokedAt).toEqual(new Date(1_000))
  })

  test('a first key is created only if the store has never had one', async () => {
    const first = await stores().keys.createFirst(record({ name: 'first' }))
    expect(first?.name).toBe('first')
    expect(await stores().keys.createFirst(record())).toBeUndefined()
    await stores().keys.revoke(first?.id ?? 0n, new Date())
    expect(await stores().keys.createFirst(record())).toBeUndefined()
    expect(await stores().keys.list()).toHaveLength(1)
  })

  test('uses add up, and times never go backwards', async () => {
    const { id, hash } = await stores().keys.create(record())
    const at = (seconds: number) => new Date(1_800_000_000_000 + seconds * 1_000)
    await stores().keys.recordUses([{ id, lastUsedAt: at(5), deprecatedUses: 0 }])
    expect((await stores().keys.find(hash))?.deprecatedLastUsedAt).toBeUndefined()
    for (const [used, deprecatedUses] of [[9, 3] as const, [7, 2] as const]) {
      await stores().keys.recordUses([{ id, lastUsedAt: at(used), deprecatedUses, deprecatedLastUsedAt: at(used - 1) }])
    }
    expect(await stores().keys.find(hash)).toMatchObject({
      lastUsedAt: at(9),
      deprecatedUses: 5n,
      deprecatedLastUsedAt: at(8),
    })
  })

  test('a use of a key that does not exist is ignored', async () => {
    await stores().keys.recordUses([{ id: 99n, lastUsedAt: new Date(), deprecatedUses: 1 }])
    expect(await stores().keys.list()).toEqual([])
  })

  test('a second process sees a new key and its revocation', async () => {
    await using other = await openAnother()
    const key = await stores().keys.create(record())
    expect(await other.keys.find(key.hash)).toEqual(key)
    await other.keys.revoke(key.id, new Date())
    expect((await stores().keys.find(key.hash))?.revokedAt).toBeDefined()
  })
}

const pet = (id: bigint): Pet => ({ id, name: `Nr. ${id}`, categoryId: 2n ** 62n + id / 2n, status: 'sold' })
const many = (count: number, first = 1n) => Array.from({ length: count }, (_, i) => pet(first + BigInt(i)))

export async function* batches(...all: (readonly ImportedPet[])[]) {
  yield* all
}

async function everythingIn({ transfer }: Stores): Promise<Pet[]> {
  const pets: Pet[] = []
  for await (const batch of transfer.read()) pets.push(...batch)
  return pets
}

function describeExport({ stores }: Setup): void {
  test('an empty store has nothing', async () => {
    expect(await everythingIn(stores())).toEqual([])
    expect([0, undefined]).toContain(await stores().transfer.estimate())
  })

  test('animals come in bounded batches as of one moment, and others can add meanwhile', async () => {
    const pets = many(2 * batchPetsMax + 1)
    await stores().transfer.load(batches(pets), 'keep')
    const seen: Pet[] = []
    for await (const batch of stores().transfer.read()) {
      if (seen.length === 0) await stores().pets.create({ name: 'too late', categoryId: 1n })
      expect(batch.length).toBeLessThanOrEqual(batchPetsMax)
      seen.push(...batch)
    }
    expect(seen).toEqual(pets)
    expect((await everythingIn(stores())).at(-1)?.name).toBe('too late')
  })

  test('it can be stopped in the middle', async () => {
    await stores().transfer.load(batches(many(batchPetsMax + 1)), 'keep')
    for (let i = 0; i < 20; i++) for await (const _ of stores().transfer.read()) break
    await stores().pets.create(rex)
    expect(await stores().transfer.load(batches([pet(1n)]), 'new')).toBe(1n)
  })
}

function describeImport({ stores, reopen }: Setup): void {
  const add = async () => stores().pets.create(rex)

  test('with their ids, animals come back exactly, and later ones have higher ids', async () => {
    const pets: Pet[] = [
      { id: 3n, name: '  spaces ', categoryId: int64Min },
      { id: 4n, name: 'e\u0301 \u00e9 🐕‍🦺 \u202e\u2028\u0001"\\', categoryId: 0n, status: 'available' },
      { id: 2n ** 53n + 1n, name: 'x'.repeat(1_000), categoryId: int64Max, status: 'pending' },
      {
        id: int64Max - 1_000_000_000n,
        name: "'); DROP TABLE pets;--",
        categoryId: 2n ** 53n + 1n,
        status: 'sold',
      },
    ]
    const given = batches(pets.slice(0, 1), [], pets.slice(1))
    expect(await stores().transfer.load(given, 'keep')).toBe(4n)
    await reopen()
    expect(await everythingIn(stores())).toEqual(pets)
    expect((await add()).id).toBe(int64Max - 999_999_999n)
  })

  test('with their ids, animals are refused if the store has one, and nothing changes', async () => {
    const before = await add()
    expect(await failureOf(() => stores().transfer.load(batches([pet(5n)]), 'keep'))).toBeInstanceOf(SetupError)
    expect(await everythingIn(stores())).toEqual([before])
  })

  test('with their ids, animals are refused or come first if another one is added meanwhile', async () => {
    let adding: Promise<unknown> | undefined
    async function* meanwhile() {
      yield many(3)
      adding = add().catch(() => undefined)
      await Bun.sleep(50)
      yield many(3, 4n)
    }
    const result = await failureOf(() => stores().transfer.load(meanwhile(), 'keep'))
    await adding
    const ids = idsOf(await everythingIn(stores()))
    if (result === 'no failure') expect(ids.slice(0, 6)).toEqual([1n, 2n, 3n, 4n, 5n, 6n])
    else {
      expect(result).toBeInstanceOf(SetupError)
      expect(ids).toHaveLength(1)
    }
  })

  test.each<[string, bigint | undefined]>([
    ['the same id again', 7n],
    ['a lower id', 6n],
    ['no id', undefined],
    ['id 0', 0n],
    ['a negative id', -1n],
    ['an id that leaves too few for later animals', int64Max - 999_999_999n],
    ['the highest id', int64Max],
  ])('%s cannot be kept, and nothing changes', async (_, id) => {
    const wrong: ImportedPet = { ...rex, ...(id !== undefined && { id }) }
    for (const given of [batches([pet(5n), pet(7n), wrong]), batches([pet(7n)], [wrong])]) {
      expect(await failureOf(() => stores().transfer.load(given, 'keep'))).toBeInstanceOf(SetupError)
      expect(await everythingIn(stores())).toEqual([])
    }
  })

  test('new ids are higher than all before, in order; ids of the source are ignored', async () => {
    const first = await add()
    const given: ImportedPet[] = [pet(7n), pet(7n), pet(1n), rex, pet(int64Max)]
    const count = await stores().transfer.load(batches(given, many(batchPetsMax)), 'new')
    expect(count).toBe(BigInt(5 + batchPetsMax))
    const [before, ...after] = await everythingIn(stores())
    expect(before).toEqual(first)
    expect(after.map(({ name }) => name)).toEqual([...given, ...many(batchPetsMax)].map(({ name }) => name))
    expect((await add()).id).toBeGreaterThan(after.at(-1)?.id ?? 0n)
  })

  test('an import of nothing adds nothing', async () => {
    expect(await stores().transfer.load(batches(), 'new')).toBe(0n)
    expect(await stores().transfer.load(batches([], []), 'keep')).toBe(0n)
    expect(await everythingIn(stores())).toEqual([])
  })

  test.each(['keep', 'new'] as const)('if the source fails, nothing is added (%s ids)', async ids => {
    const error = new Error('line 3 is bad')
    async function* failing() {
      yield many(batchPetsMax)
      throw error
    }
    expect(await failureOf(() => stores().transfer.load(failing(), ids))).toBe(error)
    expect(await everythingIn(stores())).toEqual([])
    expect((await add()).id).toBeGreaterThan(0n)
  })

  test('a slow source blocks no writer, and no reader sees a part of the import', async () => {
    const seen: string[][] = []
    async function* slow() {
      for (let i = 0; i < 3; i++) {
        yield [pet(1n)]
        await stores().pets.create({ name: 'meanwhile', categoryId: 1n })
        seen.push((await stores().pets.list({ limit: 9 })).pets.map(({ name }) => name))
      }
    }
    expect(await stores().transfer.load(slow(), 'new')).toBe(3n)
    expect(seen).toEqual([1, 2, 3].map(added => Array(added).fill('meanwhile')))
    const after = (await everythingIn(stores())).map(({ name }) => name)
    expect(after).toEqual([...Array(3).fill('meanwhile'), ...Array(3).fill('Nr. 1')])
  })

  test('an interruption either comes too late or leaves the store unchanged', async () => {
    const interruption = new AbortController()
    async function* interrupted() {
      yield many(batchPetsMax)
      interruption.abort(new Error('Ctrl-C'))
    }
    const result = await failureOf(() => stores().transfer.load(interrupted(), 'new', interruption.signal))
    if (result !== 'no failure') expect(result).toBe(interruption.signal.reason)
    expect(await everythingIn(stores())).toHaveLength(result === 'no failure' ? batchPetsMax : 0)
  })
}

/** Several processes open the store at the same moment, as several instances would, and each adds an animal. */
export async function openAtOnce(url: string, count: number): Promise<void> {
  const storeModule = join(import.meta.dir, '../../src/store/open.ts')
  const script = `const { openStores } = await import(${JSON.stringify(storeModule)})
    const stores = await openStores(${JSON.stringify(url)}, { create: true })
    await stores.pets.create({ name: 'x', categoryId: 1n })
    await stores.close()`
  const processes = Array.from({ length: count }, () =>
    Bun.spawn([process.execPath, '--no-env-file', '-e', script], { stdout: 'pipe', stderr: 'pipe' }),
  )
  const errors = await Promise.all(processes.map(async child => (await child.exited) && child.stderr.text()))
  expect(errors).toEqual(Array(count).fill(0))
}
