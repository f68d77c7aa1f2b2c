import type { TransactionSQL } from 'bun'
import { OutcomeUnknown } from '../../errors.ts'
import type { Pet } from '../../pet.ts'
import { batchPetsMax, type ImportedPet, type ImportIds, type Transfer } from '../../store-contract.ts'
import { checkIdsLeft, type PetRow, storeNotEmpty, toPet } from '../rows.ts'
import { isConnectionLost, postgresStoreError } from './errors.ts'
import { bigints, statements, texts } from './pets.ts'
import { connectForLongWork, longTransaction } from './server.ts'
import type { PostgresAddress } from './url.ts'

const cannotRead = 'Cannot read the store'
const stage = 'INSERT INTO staged SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[])'

/** Every call has its own connection and transaction. */
export class PostgresTransfer implements Transfer {
  readonly #address: PostgresAddress

  constructor(address: PostgresAddress) {
    this.#address = address
  }

  /** The highest id: counting would read the whole table. */
  async estimate(): Promise<number> {
    try {
      await using connection = connectForLongWork(this.#address)
      const [row] = await connection.sql<[{ last_id: bigint | null }]>`SELECT max(id) AS last_id FROM pets`
      return Number(row.last_id ?? 0n)
    } catch (error) {
      throw postgresStoreError(error, this.#address.location, cannotRead)
    }
  }

  /** All batches are of one snapshot. The server ends a session whose reader pauses for 10 minutes. */
  async *read(): AsyncGenerator<readonly Pet[]> {
    try {
      await using connection = connectForLongWork(this.#address)
      using sql = await connection.sql.reserve()
      await sql.unsafe(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${longTransaction}`)
      for (let after: bigint | undefined = 0n; after !== undefined; ) {
        const rows: PetRow[] = await sql.unsafe(statements.list, [after, batchPetsMax])
        if (rows.length > 0) yield rows.map(toPet)
        after = rows.at(-1)?.id
      }
    } catch (error) {
      throw postgresStoreError(error, this.#address.location, cannotRead)
    }
  }

  /** Takes the lock only after all animals are in a temporary table, so a slow source does not block writers. */
  async load(batches: AsyncIterable<readonly ImportedPet[]>, ids: ImportIds, signal?: AbortSignal): Promise<bigint> {
    let committing = false
    try {
      await using connection = connectForLongWork(this.#address)
      return await connection.sql.begin(async transaction => {
        await transaction.unsafe(longTransaction)
        await transaction`SET LOCAL lock_timeout = '60s'`
        // Fails early; checked again under the lock.
        if (ids === 'keep') await this.#checkEmpty(transaction)
        await transaction`CREATE TEMP TABLE staged (id bigint, name text, category_id bigint, status text) ON COMMIT DROP`
        let count = 0
        for await (const pets of batches) {
          signal?.throwIfAborted()
          const places = pets.map(({ id = null }, index) => (ids === 'keep' ? id : BigInt(count + index + 1)))
          await transaction.unsafe(stage, [
            bigints(transaction, places, place => place),
            texts(transaction, pets, ({ name }) => name),
            bigints(transaction, pets, ({ categoryId }) => categoryId),
            texts(transaction, pets, ({ status }) => status ?? null),
          ])
          count += pets.length
        }
        const [{ before }] = await transaction<[{ before: bigint }]>`SELECT petstore_lock_ids() AS before`
        if (ids === 'keep') await this.#checkEmpty(transaction)
        else checkIdsLeft(this.#address.location, count, before)
        await transaction.unsafe(
          `INSERT INTO pets (id, name, category_id, status)
           SELECT ${ids === 'keep' ? 0 : before} + id, name, category_id, status FROM staged`,
        )
        signal?.throwIfAborted()
        committing = true
        return BigInt(count)
      })
    } catch (cause) {
      if (committing && isConnectionLost(cause)) throw new OutcomeUnknown('the connection was lost', { cause })
      throw postgresStoreError(cause, this.#address.location, 'Nothing has changed in the store')
    }
  }

  async #checkEmpty(transaction: TransactionSQL): Promise<void> {
    const [row] = await transaction`SELECT 1 FROM pets LIMIT 1`
    if (row) throw storeNotEmpty(this.#address.location)
  }
}
