import type { SQL, TransactionSQL } from 'bun'
import { OutcomeUnknown } from '../../errors.ts'
import { int64Max } from '../../int64.ts'
import type { ImportedPet, ImportIds } from '../../store.ts'
import { holdsAnimals, keptId, lacksIds } from '../load-refusals.ts'
import { integers, texts } from './arrays.ts'
import { isConnectionLost } from './fault.ts'

const statements = {
  createStaged: `
    CREATE TEMP TABLE staged (
      place bigint GENERATED ALWAYS AS IDENTITY, id bigint, name text, category_id bigint, status text
    ) ON COMMIT DROP`,
  stage: `
    INSERT INTO staged (id, name, category_id, status)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[])`,
  holdsAny: 'SELECT EXISTS (SELECT 1 FROM pets) AS found',
  lock: 'SELECT last_id FROM pet_ids FOR UPDATE',
  keep: `
    INSERT INTO pets (id, name, category_id, status)
    SELECT id, name, category_id, status FROM staged ORDER BY place`,
  new: `
    INSERT INTO pets (id, name, category_id, status)
    SELECT $1::bigint + place, name, category_id, status FROM staged ORDER BY place`,
  advance: 'UPDATE pet_ids SET last_id = $1',
} as const

/** Waiting for others who load or add, which is no reason to give up. */
const patience = "SET LOCAL lock_timeout = '60s'"

/**
 * Gathers everything in a temporary table first, and only then takes the lock that whoever adds animals waits for: it is held for
 * as long as the database needs to take the animals in, and not for as long as somebody needs to send them.
 */
export function loadPets(
  sql: SQL,
  place: string,
  batches: AsyncIterable<readonly ImportedPet[]>,
  ids: ImportIds,
  interrupted?: AbortSignal,
): Promise<bigint> {
  let committing = false
  const loading = sql.begin(async transaction => {
    await transaction.unsafe(patience)
    // It is checked again under the lock; but whoever sends a million animals is better told before.
    if (ids === 'keep') await refuseAnimals(transaction, place)
    const { count, lastId } = await stage(transaction, batches, ids, interrupted)
    const [counter] = await transaction.unsafe<{ last_id: bigint }[]>(statements.lock)
    const before = counter?.last_id ?? 0n
    if (ids === 'keep') await refuseAnimals(transaction, place)
    else if (before > int64Max - BigInt(count)) throw lacksIds(place, count, before)
    await (ids === 'keep'
      ? transaction.unsafe(statements.keep)
      : transaction.unsafe(statements.new, [before]))
    const last = ids === 'keep' ? lastId : before + BigInt(count)
    // An id that was given once is not given again, even where its animal was deleted by hand.
    if (last > before) await transaction.unsafe(statements.advance, [last])
    interrupted?.throwIfAborted()
    committing = true
    return BigInt(count)
  })
  return loading.catch((cause: unknown) => {
    throw committing && isConnectionLost(cause)
      ? new OutcomeUnknown('the connection was lost', { cause })
      : cause
  })
}

async function stage(
  transaction: TransactionSQL,
  batches: AsyncIterable<readonly ImportedPet[]>,
  ids: ImportIds,
  interrupted?: AbortSignal,
): Promise<{ readonly count: number; readonly lastId: bigint }> {
  await transaction.unsafe(statements.createStaged)
  let count = 0
  let lastId = 0n
  for await (const pets of batches) {
    interrupted?.throwIfAborted()
    if (ids === 'keep') for (const { id } of pets) lastId = keptId(id, lastId)
    await transaction.unsafe(statements.stage, [
      integers(transaction, pets, ({ id }) => id ?? 0n),
      texts(transaction, pets, ({ name }) => name),
      integers(transaction, pets, ({ categoryId }) => categoryId),
      texts(transaction, pets, ({ status }) => status ?? null),
    ])
    count += pets.length
  }
  return { count, lastId }
}

async function refuseAnimals(transaction: TransactionSQL, place: string): Promise<void> {
  const [row] = await transaction.unsafe<{ found: boolean }[]>(statements.holdsAny)
  if (row?.found) throw holdsAnimals(place)
}
