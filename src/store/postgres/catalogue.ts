import type { SQL, TransactionSQL } from 'bun'
import { OutcomeUnknown } from '../../errors.ts'
import type { PetCorrection } from '../../pet.ts'
import type { Catalogue, ImportedPet, ImportIds } from '../../store.ts'
import { withTimeout } from '../../timeout.ts'
import { checkedKeptId, checkIdsLeft, correctedRow, type PetRow, petColumns, petOf, storeNotEmpty } from '../rows.ts'
import { isConnectionLost, postgresStoreError, postgresUnavailable } from './errors.ts'
import { bigints } from './pets.ts'
import { connectForLongWork, longTransaction, workMsMax } from './server.ts'
import type { PostgresAddress } from './url.ts'

/** Exported at a time: fewer writes are faster. */
const chunkCharsMin = 64 * 1024
/** A read or an import without progress is ended: meanwhile PostgreSQL cannot vacuum. */
const idleMsDefault = 600_000
/** For each statement of a correction or a removal. */
const changeMsMax = 3_000
/** A COPY lasts as long as its source or its reader needs. */
const withoutTimeLimit = `${longTransaction}; SET LOCAL statement_timeout = 0`

/** Every call has its own connection and transaction. */
export class PostgresCatalogue implements Catalogue {
  readonly #address: PostgresAddress
  readonly #idleMsMax: number

  constructor(address: PostgresAddress, idleMsMax = idleMsDefault) {
    this.#address = address
    this.#idleMsMax = idleMsMax
  }

  /** The highest id: counting would read the whole table. */
  estimate(): Promise<number> {
    return this.#run(async sql => {
      const [row] = await sql<[{ last_id: bigint | null }]>`SELECT max(id) AS last_id FROM pets`
      return Number(row.last_id ?? 0n)
    })
  }

  /** A single statement sees the data of one moment. */
  async *read(): AsyncGenerator<string> {
    try {
      await using connection = connectForLongWork(this.#address)
      using sql = await connection.sql.reserve()
      // In the order of the index: a sort could need as much disk as the table.
      await sql.unsafe(`BEGIN READ ONLY; ${withoutTimeLimit}; SET LOCAL enable_sort = off`)
      const copy = sql.unsafe('COPY (SELECT id, name, category_id, status FROM pets ORDER BY id) TO STDOUT').readable()
      const decoder = new TextDecoder()
      let rows = ''
      for await (const chunk of this.#watched(copy, connection.sql)) {
        rows += decoder.decode(chunk, { stream: true })
        if (rows.length < chunkCharsMin) continue
        const end = rows.lastIndexOf('\n') + 1
        yield jsonLines(rows.slice(0, end))
        rows = rows.slice(end)
      }
      if (rows !== '') yield jsonLines(rows)
    } catch (error) {
      throw this.#errorOf(error)
    }
  }

  /** Takes the lock only after all animals are in a temporary table, so a slow source does not block writers. */
  load(batches: AsyncIterable<readonly ImportedPet[]>, ids: ImportIds, signal?: AbortSignal): Promise<bigint> {
    return this.#run(sql =>
      commit(sql, signal, async transaction => {
        await transaction.unsafe(withoutTimeLimit)
        await transaction`SET LOCAL lock_timeout = '60s'`
        // Fails early; checked again under the lock.
        if (ids === 'keep') await this.#checkEmpty(transaction)
        const count = await stage(transaction, this.#watched(batches, sql, signal), ids)
        const [{ before }] = await transaction<[{ before: bigint }]>`SELECT petstore_lock_ids() AS before`
        if (ids === 'keep') await this.#checkEmpty(transaction)
        else checkIdsLeft(this.#address.location, count, before)
        await transaction.unsafe(
          `INSERT INTO pets (id, name, category_id, status)
           SELECT ${ids === 'keep' ? 0 : before} + id, name, category_id, status FROM staged`,
        )
        return BigInt(count)
      }),
    )
  }

  correct(id: bigint, correction: PetCorrection, signal?: AbortSignal) {
    return this.#change(signal, async transaction => {
      const select = `SELECT ${petColumns} FROM pets WHERE id = $1 FOR UPDATE`
      const [row] = await transaction.unsafe<PetRow[]>(select, [id])
      if (!row) return undefined
      const corrected = correctedRow(row, correction)
      const update = 'UPDATE pets SET name = $1, category_id = $2, status = $3 WHERE id = $4'
      await transaction.unsafe(update, [corrected.name, corrected.categoryId, corrected.status, id])
      return { before: petOf(row), after: petOf(corrected) }
    })
  }

  remove(ids: readonly bigint[], signal?: AbortSignal): Promise<readonly bigint[]> {
    return this.#change(signal, async transaction => {
      const given = bigints(transaction, ids, id => id)
      // In one order, so that two removals cannot deadlock.
      const select = 'SELECT id FROM pets WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE'
      const found = new Set((await transaction.unsafe<Pick<PetRow, 'id'>[]>(select, [given])).map(({ id }) => id))
      const missing = ids.filter(id => !found.has(id))
      if (missing.length === 0) await transaction`DELETE FROM pets WHERE id = ANY (${given}::bigint[])`
      return missing
    })
  }

  async #change<T>(signal: AbortSignal | undefined, work: (transaction: TransactionSQL) => Promise<T>): Promise<T> {
    try {
      await using connection = connectForLongWork(this.#address)
      const change = commit(connection.sql, signal, async transaction => {
        await transaction.unsafe(`${longTransaction}; SET LOCAL statement_timeout = ${changeMsMax}`)
        return work(transaction)
      })
      return await withTimeout(change, workMsMax, () => {
        throw new OutcomeUnknown(`no answer within ${workMsMax} ms`)
      })
    } catch (error) {
      const { location } = this.#address
      throw postgresUnavailable(postgresStoreError(error, location, 'Nothing has changed in the store'))
    }
  }

  async #checkEmpty(transaction: TransactionSQL): Promise<void> {
    const [row] = await transaction`SELECT 1 FROM pets LIMIT 1`
    if (row) throw storeNotEmpty(this.#address.location)
  }

  /** The items until the signal aborts. Closes the connection if the next one is requested or arrives too late. */
  async *#watched<T>(items: AsyncIterable<T>, sql: SQL, signal?: AbortSignal): AsyncGenerator<T> {
    const timer = setTimeout(() => void sql.close({ timeout: 0 }), this.#idleMsMax)
    try {
      for await (const item of items) {
        signal?.throwIfAborted()
        timer.refresh()
        yield item
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async #run<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    try {
      await using connection = connectForLongWork(this.#address)
      return await work(connection.sql)
    } catch (error) {
      throw this.#errorOf(error)
    }
  }

  #errorOf(error: unknown): unknown {
    return postgresStoreError(postgresUnavailable(error), this.#address.location)
  }
}

/** One transaction, unless the signal aborts before COMMIT. OutcomeUnknown if the connection is lost during COMMIT. */
async function commit<T>(sql: SQL, signal: AbortSignal | undefined, work: (transaction: TransactionSQL) => Promise<T>) {
  let committing = false
  try {
    return await sql.begin(async transaction => {
      const result = await work(transaction)
      signal?.throwIfAborted()
      committing = true
      return result
    })
  } catch (cause) {
    if (!committing || !isConnectionLost(cause)) throw cause
    throw new OutcomeUnknown('the connection was lost', { cause })
  }
}

/** Returns how many animals are in the table `staged` now. */
async function stage(transaction: TransactionSQL, batches: AsyncIterable<readonly ImportedPet[]>, ids: ImportIds) {
  await transaction`CREATE TEMP TABLE staged (id bigint, name text, category_id bigint, status text) ON COMMIT DROP`
  const copy = transaction.unsafe('COPY staged FROM STDIN').writable().getWriter()
  let count = 0
  let previous = 0n
  for await (const pets of batches) {
    if (ids === 'keep') for (const { id } of pets) previous = checkedKeptId(id, previous)
    await copy.write(pets.map((pet, index) => copyRow(ids === 'keep' ? pet.id : count + index + 1, pet)).join(''))
    count += pets.length
  }
  await copy.close()
  return count
}

function jsonLines(rows: string): string {
  return rows
    .replace(/\\[\\v]|"|(?![\t\n])\p{Cc}/gu, jsonEscape)
    .replace(/([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\n]*)\n/g, '{"id":$1,"name":"$2","categoryId":$3,"status":"$4"}\n')
    .replaceAll(',"status":"\\N"', '')
}

/** COPY has the escapes of JSON, and `\v`; but it does not escape quotes and the other control characters. */
function jsonEscape(found: string): string {
  if (found === '\\\\') return found
  return found === '\\v' ? '\\u000b' : JSON.stringify(found).slice(1, -1)
}

function copyRow(id: bigint | number | undefined, { name, categoryId, status }: ImportedPet): string {
  return `${id}\t${name.replace(/[\\\t\n\r]/g, '\\$&')}\t${categoryId}\t${status ?? '\\N'}\n`
}
