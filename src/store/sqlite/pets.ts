import type { Database } from 'bun:sqlite'
import type { Page } from '../../page.ts'
import { type PetStatus, petStatuses } from '../../pet.ts'
import { idempotencyKeyMs, type PetStore } from '../../store.ts'
import { type PetRow, pageOf, petColumns, petOf } from '../rows.ts'
import type { TickSnapshot } from './snapshot.ts'
import type { Writer } from './writer.ts'

export const statements = {
  list: `SELECT ${petColumns} FROM pets WHERE id > $after ORDER BY id LIMIT $rows`,
  listByStatus: `SELECT ${petColumns} FROM pets WHERE status = $status AND id > $after ORDER BY id LIMIT $rows`,
  get: `SELECT ${petColumns} FROM pets WHERE id = $id`,
} as const

type PageParameters = { after: bigint; rows: number }

/** A page of 100 short names takes 10 KB, of the longest ones up to 1.5 MB. */
const firstPagesMax = 64

/** First pages until the next commit: callers recognise a page by its object, and encode it once. */
class FirstPages {
  readonly #pages = new Map<number, Page>()
  #version: bigint | undefined

  find(version: bigint | undefined, limit: number, status: PetStatus | undefined): Page | undefined {
    if (version !== this.#version) this.#pages.clear()
    this.#version = version
    return this.#pages.get(pageKey(limit, status))
  }

  /** As of the version of the last call of `find`. */
  add(page: Page, limit: number, status: PetStatus | undefined): Page {
    if (this.#pages.size >= firstPagesMax) this.#pages.clear()
    this.#pages.set(pageKey(limit, status), page)
    return page
  }
}

const statuses = [undefined, ...petStatuses]

/** A number is faster to look up than a text. */
function pageKey(limit: number, status: PetStatus | undefined): number {
  return limit * statuses.length + statuses.indexOf(status)
}

/** Reads on this thread. The writer thread writes. */
export function createSqlitePets(reading: Database, snapshot: TickSnapshot, writer: Pick<Writer, 'write'>): PetStore {
  const list = reading.query<PetRow, PageParameters>(statements.list)
  const listByStatus = reading.query<PetRow, PageParameters & { status: PetStatus }>(statements.listByStatus)
  const get = reading.query<PetRow, { id: bigint }>(statements.get)
  const firstPages = new FirstPages()
  const findExpired = reading.query('SELECT 1 FROM idempotency_keys WHERE created_at_ms <= $expiredUntilMs LIMIT 1')

  function readPage(limit: number, status: PetStatus | undefined, after: bigint): Page {
    const rows = limit + 1
    const found = snapshot.read(() =>
      status === undefined ? list.all({ after, rows }) : listByStatus.all({ status, after, rows }),
    )
    return pageOf(found, limit)
  }

  return {
    async list({ limit, status, after }) {
      if (after !== undefined) return readPage(limit, status, after)
      // The version first: if there is a commit before the rows are read, the page is dropped too early, not too late.
      const version = snapshot.version()
      return firstPages.find(version, limit, status) ?? firstPages.add(readPage(limit, status, 0n), limit, status)
    },
    async get(id) {
      const row = snapshot.read(() => get.get({ id }))
      return row ? petOf(row) : undefined
    },
    async create(pet) {
      const id = await writer.write({ type: 'createPet', ...pet })
      return { ...pet, id }
    },
    createOnce: (pet, key) => writer.write({ type: 'createPetOnce', pet, key }),
    async deleteExpiredIdempotencyKeys(now, max) {
      const expiredUntilMs = now.getTime() - idempotencyKeyMs
      // A sweep with nothing to delete takes no lock.
      const found = snapshot.read(() => findExpired.get({ expiredUntilMs }))
      return found ? await writer.write({ type: 'deleteExpiredIdempotencyKeys', expiredUntilMs, max }) : 0
    },
  }
}
