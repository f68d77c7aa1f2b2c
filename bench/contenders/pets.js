// Rules and statements that the contenders share. The tables are those of the petstore's own SQLite file.
export const statuses = ['available', 'pending', 'sold']

/** @returns {{limit: number, status: string | undefined, after: number} | undefined} undefined if a value is invalid */
export function readPage(limit = '20', status = undefined, cursor = '0') {
  if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > 100) return undefined
  if (status !== undefined && !statuses.includes(status)) return undefined
  if (!/^\d{1,18}$/.test(cursor)) return undefined
  return { limit: Number(limit), status, after: Number(cursor) }
}

/** @returns {{name: string, categoryId: number, status: string | undefined} | undefined} undefined if a value is invalid */
export function readNewPet(sent) {
  if (typeof sent !== 'object' || sent === null) return undefined
  const { name, categoryId, status } = sent
  if (typeof name !== 'string' || name.length > 1_000 || !/\S/.test(name)) return undefined
  if (!Number.isInteger(categoryId) || Math.abs(categoryId) > 2 ** 63) return undefined
  if (status !== undefined && !statuses.includes(status)) return undefined
  return { name, categoryId, status }
}

export function nextLink(limit, status, lastId) {
  const filter = status === undefined ? '' : `&status=${status}`
  return `</v1/pets?limit=${limit}${filter}&cursor=${lastId}>; rel="next"`
}

/** An animal created without a status has none in responses. */
export function petOf(row) {
  if (row.status !== null) return row
  const { id, name, categoryId } = row
  return { id, name, categoryId }
}

/** The rows include one more than the limit if a next page exists. */
export function pageOf(rows, limit) {
  const more = rows.length > limit
  if (more) rows.pop()
  return { pets: rows.map(petOf), more }
}

const columns = 'id, name, category_id AS "categoryId", status'

/** The pets in a database of bun:sqlite or better-sqlite3, with every commit on disk. */
export function openPets(database) {
  database.exec('PRAGMA journal_mode = WAL')
  database.exec('PRAGMA synchronous = FULL')
  const list = database.prepare(`SELECT ${columns} FROM pets WHERE id > ? ORDER BY id LIMIT ?`)
  const listByStatus = database.prepare(`SELECT ${columns} FROM pets WHERE status = ? AND id > ? ORDER BY id LIMIT ?`)
  const get = database.prepare(`SELECT ${columns} FROM pets WHERE id = ?`)
  const create = database.prepare('INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)')
  return {
    list({ limit, status, after }) {
      const rows = status === undefined ? list.all(after, limit + 1) : listByStatus.all(status, after, limit + 1)
      return pageOf(rows, limit)
    },
    get(id) {
      const row = get.get(id)
      return row && petOf(row)
    },
    create({ name, categoryId, status }) {
      const id = Number(create.run(name, categoryId, status ?? null).lastInsertRowid)
      return { id, name, categoryId, status }
    },
  }
}
