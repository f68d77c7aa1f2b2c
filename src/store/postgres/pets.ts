import type { SQL } from 'bun'
import { IdsExhausted, StoreUnavailable } from '../../errors.ts'
import type { NewPet, PetChanges, PetStatus } from '../../pet.ts'
import type { Change, Creation, IdempotencyKey, PetStore } from '../../store-contract.ts'
import { idempotencyKeyMs } from '../../store-contract.ts'
import { withTimeout } from '../../timeout.ts'
import { CommitQueue, type Outcome, type WriteHealth, writeMsMax } from '../commit-queue.ts'
import { hashPet, type PetRow, petColumns, toMs, toPage, toPet } from '../rows.ts'
import type { Connections, Reader } from './connections.ts'
import { isLockTimeout, isRefusedByServer } from './errors.ts'

export const statements = {
  list: `SELECT ${petColumns} FROM pets WHERE id > $1 ORDER BY id LIMIT $2`,
  // With `status = $1 ORDER BY id` the planner may walk the primary key and skip other statuses, which is expensive if
  // the status is rare. Only the index on both columns has this order.
  listByStatus: `
    SELECT ${petColumns} FROM pets
    WHERE (status, id) > ($1, $2) AND status <= $1 ORDER BY status, id LIMIT $3`,
  get: `SELECT ${petColumns} FROM pets WHERE id = ANY ($1::bigint[])`,
  create: 'SELECT pet_id, fingerprint, created FROM petstore_create($1, $2, $3, $4, $5, $6, $7, $8)',
  change: `
    SELECT outcome, (pet).id, (pet).name, (pet).category_id AS "categoryId", (pet).status
    FROM petstore_change($1, $2, $3, $4, $5, $6)`,
  deleteExpiredKeys: `
    WITH deleted AS (
      -- By the address of the row: plans for a join on the key read the index of all keys.
      DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM idempotency_keys
        -- From where the previous batch ended: until VACUUM, the index still contains the rows deleted before.
        WHERE created_at_ms <= $1 AND created_at_ms >= $2
        -- Other instances delete at the same time.
        ORDER BY created_at_ms LIMIT $3 FOR UPDATE SKIP LOCKED
      )) RETURNING created_at_ms
    ) SELECT count(*)::int AS count, max(created_at_ms) AS last_ms FROM deleted`,
} as const

/** Between two attempts to change an animal that is locked: a batch of another instance takes a few milliseconds. */
const lockRetryMs = 20

/** Commits writes of animals in batches. */
export function createPostgresPets(reader: Reader, writing: Connections, health: WriteHealth) {
  const newQueue = <Write, Result extends Creation | ChangeResult>(writeAll: WriteAll<Write, Result>) => {
    const send: Send<Write, Result> = take => {
      const work = async (sql: SQL) => {
        const writes = take()
        return writes.length > 0 ? writeAll(sql, writes) : []
      }
      // Without a limit: each write has its own deadline.
      return writing.run(work, { msMax: Number.POSITIVE_INFINITY })
    }
    return new CommitQueue<Write, Result>({ commit: take => commitBatch(take, send), kindOf: () => 'pets', health })
  }
  const creations = newQueue(createAll)
  // A queue of their own, because a batch is one call of one function.
  const changes = newQueue(changeAll)
  /** Tries again while another transaction has locked the animal. */
  const change = async (request: ChangeRequest): Promise<Change> => {
    for (const deadlineMs = performance.now() + writeMsMax; performance.now() < deadlineMs; ) {
      const result = await changes.add(request)
      if (result.outcome !== 'locked') return result
      await new Promise(resolve => setTimeout(resolve, lockRetryMs))
    }
    throw new StoreUnavailable('another process has locked the animal')
  }
  let sweptToMs = 0n
  const pets: PetStore = {
    async list({ limit, status, after = 0n }) {
      const rows = limit + 1
      const statement = status ? statements.listByStatus : statements.list
      const values = status ? [status, after, rows] : [after, rows]
      return reader.run(async sql => toPage(await sql.unsafe<PetRow[]>(statement, values), limit))
    },
    get: readTogether(ids =>
      reader.run(async sql => {
        const rows = await sql.unsafe<PetRow[]>(statements.get, [bigints(sql, ids, id => id)])
        return new Map(rows.map(row => [row.id, toPet(row)]))
      }),
    ),
    async create(pet) {
      const creation = await creations.add({ pet })
      if (!('pet' in creation)) throw new Error(`an animal without an idempotency key: ${creation.outcome}`)
      return creation.pet
    },
    createOnce: (pet, key) => creations.add({ pet, key }),
    update: (id, changes, ifStatus) => change({ id, changes, ifStatus }),
    remove: (id, ifStatus) => change({ id, ifStatus }),
    async deleteExpiredIdempotencyKeys(now, max) {
      type Deleted = [{ count: number; last_ms: bigint | null }]
      const values = [BigInt(now.getTime() - idempotencyKeyMs), sweptToMs, max]
      const [{ count, last_ms }] = await writing.run(sql => sql.unsafe<Deleted>(statements.deleteExpiredKeys, values))
      // A complete sweep starts again at the oldest: another instance may have failed to delete what it had locked.
      sweptToMs = count === max && last_ms !== null ? last_ms : 0n
      return count
    },
  }
  return { pets, queues: [creations, changes] }
}

/**
 * Reads for all callers of an event-loop tick with one statement, which costs several times as much as a look-up. With
 * `aloneMs`, statements run one at a time, but the next one waits no longer than this.
 */
export function readTogether<Id, Value>(
  read: (ids: readonly Id[]) => Promise<ReadonlyMap<Id, Value>>,
  { aloneMs = 0 } = {},
): (id: Id) => Promise<Value | undefined> {
  let asked = new Map<Id, PromiseWithResolvers<Value | undefined>>()
  let isAlone = false
  const readFor = async (callers: typeof asked) => {
    try {
      const found = await read([...callers.keys()])
      for (const [id, { resolve }] of callers) resolve(found.get(id))
    } catch (error) {
      for (const { reject } of callers.values()) reject(error)
    }
  }
  const readAsked = async () => {
    const reading = readFor(asked)
    asked = new Map()
    if (aloneMs === 0) return
    isAlone = true
    await withTimeout(reading, aloneMs, () => {})
    isAlone = false
    if (asked.size > 0) void readAsked()
  }
  return id => {
    if (asked.size === 0 && !isAlone) setImmediate(readAsked)
    return asked.getOrInsertComputed(id, () => Promise.withResolvers()).promise
  }
}

interface CreateRequest {
  readonly pet: NewPet
  readonly key?: IdempotencyKey
}

interface ChangeRequest {
  readonly id: bigint
  /** Absent for a removal. */
  readonly changes?: PetChanges
  readonly ifStatus: PetStatus | undefined
}

/** One round trip and one transaction. Returns a result for each write, in order. */
type WriteAll<Write, Result> = (sql: SQL, writes: readonly Write[]) => Promise<Result[]>

/** Sends the writes of one batch, which it takes when it has a connection. */
type Send<Write, Result> = (take: () => readonly Write[]) => Promise<readonly Result[]>

/** If the server refuses the batch for one write, each is sent alone. */
export async function commitBatch<Write, Result extends Creation | ChangeResult>(
  take: () => readonly Write[],
  send: Send<Write, Result>,
): Promise<readonly Outcome<Result>[]> {
  let taken: readonly Write[] = []
  try {
    const results = await send(() => {
      taken = take()
      return taken
    })
    return results.map(result => ({ result, changed: /^(created|changed)$/.test(result.outcome) }))
  } catch (error) {
    if (isLockTimeout(error)) return taken.map(() => ({ error, mayRepeat: true }))
    // One refused write, or too few ids for the batch, must not fail the others.
    const isOfOneWrite = isRefusedByServer(error) || error instanceof IdsExhausted
    if (taken.length < 2 || !isOfOneWrite) throw error
  }
  const outcomes: Outcome<Result>[] = []
  for (const write of taken) {
    const last = outcomes.at(-1)
    // Each of the others would wait as long for the lock.
    if (last && 'mayRepeat' in last) outcomes.push(last)
    else outcomes.push(...(await commitBatch(() => [write], send).catch(error => [{ error }])))
  }
  return outcomes
}

type CreatedRow = { pet_id: bigint; fingerprint: string | null; created: boolean }

async function createAll(sql: SQL, requests: readonly CreateRequest[]): Promise<Creation[]> {
  const { unique, places } = removeDuplicates(requests)
  const keyColumns = unique.some(({ key }) => key)
    ? [
        texts(sql, unique, ({ key }) => key?.scope ?? null),
        texts(sql, unique, ({ key }) => key?.key ?? null),
        texts(sql, unique, ({ pet, key }) => (key ? hashPet(pet) : null)),
        bigints(sql, unique, ({ key }) => (key ? toMs(key.at) : null)),
      ]
    : [null, null, null, null]
  const rows = await sql.unsafe<CreatedRow[]>(statements.create, [
    texts(sql, unique, ({ pet }) => pet.name),
    bigints(sql, unique, ({ pet }) => pet.categoryId),
    texts(sql, unique, ({ pet }) => pet.status ?? null),
    ...keyColumns,
    idempotencyKeyMs,
  ])
  if (rows.length !== unique.length) throw new Error(`petstore_create returned ${rows.length} rows`)
  return places.map((place, index): Creation => {
    const request = requests[index] as CreateRequest
    const { pet_id: id, fingerprint, created } = rows[place] as CreatedRow
    const pet = { ...request.pet, id }
    if (created && unique[place] === request) return { outcome: 'created', pet }
    return fingerprint === hashPet(pet) ? { outcome: 'replayed', pet } : { outcome: 'conflict' }
  })
}

/** Of several requests with one idempotency key, the first is unique. `places` has its index for each request. */
function removeDuplicates(requests: readonly CreateRequest[]) {
  const unique: CreateRequest[] = []
  const placeOfKey = new Map<string, number>()
  const places = requests.map(request => {
    const append = () => unique.push(request) - 1
    const { key } = request
    return key ? placeOfKey.getOrInsertComputed(JSON.stringify([key.scope, key.key]), append) : append()
  })
  return { unique, places }
}

/** `locked`: another transaction holds the animal, and nothing has changed. */
type ChangeResult = Change | { readonly outcome: 'locked' }
type ChangedRow = PetRow & { readonly outcome: ChangeResult['outcome'] }

async function changeAll(sql: SQL, requests: readonly ChangeRequest[]): Promise<ChangeResult[]> {
  const isRemoval = requests.map(({ changes }) => !changes)
  const rows = await sql.unsafe<ChangedRow[]>(statements.change, [
    bigints(sql, requests, ({ id }) => id),
    sql.array(isRemoval, 'BOOLEAN'),
    texts(sql, requests, ({ changes }) => changes?.name ?? null),
    bigints(sql, requests, ({ changes }) => changes?.categoryId ?? null),
    // NULL means unchanged.
    texts(sql, requests, ({ changes }) => (changes?.status === null ? '' : (changes?.status ?? null))),
    texts(sql, requests, ({ ifStatus }) => ifStatus ?? null),
  ])
  return rows.map(({ outcome, ...pet }) => (outcome === 'no-such-pet' ? { outcome } : { outcome, pet: toPet(pet) }))
}

/** One column of many rows as one parameter: the statement has the same text for any number of rows. */
export function texts<T>(sql: SQL, rows: readonly T[], value: (row: T) => string | null) {
  return sql.array(rows.map(value), 'TEXT')
}

export function bigints<T>(sql: SQL, rows: readonly T[], value: (row: T) => bigint | null) {
  return sql.array(rows.map(value), 'BIGINT')
}
