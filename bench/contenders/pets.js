// What the contenders share: settings, rules, errors and statements. The tables are those of the petstore's own store.
const { PORT, DATABASE_URL, PETSTORE_API_KEY } = process.env

export const port = Number(PORT)
export const databaseFile = DATABASE_URL.replace('sqlite:', '')
export const credential = `Bearer ${PETSTORE_API_KEY}`

export const statuses = ['available', 'pending', 'sold']

export const errors = {
  unknownKey: { code: 'invalid_api_key', message: 'The API key is missing or unknown', status: 401 },
  invalid: { code: 'invalid_request', message: 'The body or a parameter is invalid', status: 400 },
  notFound: { code: 'pet_not_found', message: 'No animal has this id', status: 404 },
}

/** @returns {{limit: number, status: string | undefined, after: number} | undefined} undefined if a value is invalid */
export function readPage({ limit = '20', status, cursor = '0' }) {
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

/** The header `Link` of a page that has a next one. */
export function nextLink({ limit, status }, pets) {
  const filter = status === undefined ? '' : `&status=${status}`
  return `</v1/pets?limit=${limit}${filter}&cursor=${pets.at(-1).id}>; rel="next"`
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
export function openPets(Database) {
  const database = new Database(databaseFile)
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
