import type { SQL, TransactionSQL } from 'bun'
import { OutcomeUnknown } from '../../errors.ts'
import type { Pet } from '../../pet.ts'
import { batchPetsMax, type ImportedPet, type ImportIds, type Transfer } from '../../store.ts'
import { checkedKeptId, checkIdsLeft, type PetRow, petOf, storeNotEmpty } from '../rows.ts'
import { isConnectionLost, setupErrorOf, storeErrorOf } from './errors.ts'
import { bigints, statements, texts } from './pets.ts'
import { connectForLongWork, findServer, longTransaction } from './pool.ts'
import type { PostgresAddress } from './url.ts'

/** Every read and every import has its own connection and transaction. */
export class PostgresTransfer implements Transfer {
  readonly #address: PostgresAddress

  constructor(address: PostgresAddress) {
    this.#address = address
  }

  /** Ids have no gaps, and the interface deletes no animal. */
  estimate(): Promise<number> {
    return this.#run(async sql => {
      const [row] = await sql<[{ last_id: bigint | null }]>`SELECT max(id) AS last_id FROM pets`
      return Number(row.last_id ?? 0n)
    })
  }

  /** One transaction for all batches: each sees the data as of the first one. */
  async *read(): AsyncGenerator<readonly Pet[]> {
    try {
      await using connection = await this.#connect()
      // Reserved: after a lost connection, the pool would continue with another one and see later data.
      using sql = await connection.sql.reserve()
      await sql.unsafe(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${longTransaction}`)
      for (let after: bigint | undefined = 0n; after !== undefined; ) {
        const rows: PetRow[] = await sql.unsafe<PetRow[]>(statements.list, [after, batchPetsMax])
        if (rows.length > 0) yield rows.map(petOf)
        after = rows.at(-1)?.id
      }
    } catch (error) {
      throw this.#errorOf(error)
    }
  }

  /** Takes the lock only after all animals are in a temporary table, so a slow source does not block writers. */
  load(batches: AsyncIterable<readonly ImportedPet[]>, ids: ImportIds, signal?: AbortSignal): Promise<bigint> {
    let committing = false
    const work = async (transaction: TransactionSQL) => {
      await transaction.unsafe(longTransaction)
      await transaction`SET LOCAL lock_timeout = '60s'`
      // Fails early; checked again under the lock.
      if (ids === 'keep') await this.#checkEmpty(transaction)
      const count = await stage(transaction, batches, ids, signal)
      await this.#insert(transaction, ids, count)
      signal?.throwIfAborted()
      committing = true
      return BigInt(count)
    }
    return this.#run(sql =>
      sql.begin(work).catch((cause: unknown) => {
        if (!committing || !isConnectionLost(cause)) throw cause
        throw new OutcomeUnknown('the connection was lost', { cause })
      }),
    )
  }

  async #insert(transaction: TransactionSQL, ids: ImportIds, count: number): Promise<void> {
    const [{ last_id: before }] = await transaction.unsafe<[{ last_id: bigint }]>(statements.lockIds)
    if (ids === 'keep') await this.#checkEmpty(transaction)
    else checkIdsLeft(this.#address.location, count, before)
    await transaction.unsafe(
      `INSERT INTO pets (id, name, category_id, status)
       SELECT ${ids === 'keep' ? 'id' : `${before} + place`}, name, category_id, status FROM staged ORDER BY place`,
    )
  }

  async #checkEmpty(transaction: TransactionSQL): Promise<void> {
    const [row] = await transaction`SELECT 1 FROM pets LIMIT 1`
    if (row) throw storeNotEmpty(this.#address.location)
  }

  async #run<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    try {
      await using connection = await this.#connect()
      return await work(connection.sql)
    } catch (error) {
      throw this.#errorOf(error)
    }
  }

  async #connect() {
    return connectForLongWork(await findServer(this.#address.hosts, 'primary'))
  }

  #errorOf(error: unknown): unknown {
    return setupErrorOf(storeErrorOf(error), this.#address.location)
  }
}

/** Returns how many animals are in the table `staged` now. */
async function stage(
  transaction: TransactionSQL,
  batches: AsyncIterable<readonly ImportedPet[]>,
  ids: ImportIds,
  signal?: AbortSignal,
): Promise<number> {
  await transaction`
    CREATE TEMP TABLE staged (
      place bigint GENERATED ALWAYS AS IDENTITY, id bigint, name text, category_id bigint, status text
    ) ON COMMIT DROP`
  const insert = `
    INSERT INTO staged (id, name, category_id, status)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[])`
  let count = 0
  let previous = 0n
  for await (const pets of batches) {
    signal?.throwIfAborted()
    if (ids === 'keep') for (const { id } of pets) previous = checkedKeptId(id, previous)
    await transaction.unsafe(insert, [
      bigints(transaction, pets, ({ id }) => id ?? 0n),
      texts(transaction, pets, ({ name }) => name),
      bigints(transaction, pets, ({ categoryId }) => categoryId),
      texts(transaction, pets, ({ status }) => status ?? null),
    ])
    count += pets.length
  }
  return count
}
