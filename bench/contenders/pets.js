// What the contenders share: settings, rules, errors and statements. The tables are the petstore's own.
import { parse } from 'lossless-json'

const { PORT, DATABASE_URL, PETSTORE_API_KEY, ROUND } = process.env
export const port = Number(PORT)
export const databaseUrl = DATABASE_URL
export const credential = `Bearer ${PETSTORE_API_KEY}`

const fail = (status, code, message) => ({ status, body: { code, message, status } })
export const unknownKey = fail(401, 'invalid_api_key', 'The API key is missing or unknown')
const invalid = fail(400, 'invalid_request', 'The body or a parameter is invalid')
const notFound = fail(404, 'pet_not_found', 'No animal has this id')

/** Otherwise integers beyond 2^53 are rounded, which the interface forbids. */
const isExact = ROUND !== 'on'
const int64Max = 2n ** 63n - 1n
const statuses = [undefined, 'available', 'pending', 'sold']

/** A status, a body and headers for each request. The store returns rows, or promises of them. */
export function createHandlers(store, toJson = pet => pet) {
  return {
    list({ limit: limitText = '20', status, cursor = '0' }) {
      const [limit, after] = [Number(limitText), readId(cursor)]
      const isLimit = /^[1-9]\d{0,2}$/.test(limitText) && limit <= 100
      if (!isLimit || after === undefined || !statuses.includes(status)) return invalid
      // One more, to learn whether a next page exists.
      return whenReady(store.list(status, after, limit + 1), rows => {
        const body = rows.slice(0, limit).map(row => toJson(toPet(row)))
        if (rows.length <= limit) return { status: 200, body }
        const filter = status === undefined ? '' : `&status=${status}`
        const next = `/v1/pets?limit=${limit}${filter}&cursor=${rows[limit - 1].id}`
        return { status: 200, body, headers: { Link: `<${next}>; rel="next"` } }
      })
    },
    get(text) {
      const id = readId(text)
      if (id === undefined) return notFound
      return whenReady(store.get(id), row => (row ? { status: 200, body: toJson(toPet(row)) } : notFound))
    },
    create(text) {
      const sent = readNewPet(text)
      if (!sent) return invalid
      return whenReady(store.create(sent.name, sent.categoryId, sent.status ?? null), row => {
        return { status: 201, body: toJson(toPet(row)), headers: { Location: `/v1/pets/${row.id}` } }
      })
    },
  }
}

/** Without await: on SQLite there is no promise, and one would cost time. */
export const whenReady = (value, use) => (value instanceof Promise ? value.then(use) : use(value))

/** An animal created without a status has none in responses. */
function toPet(row) {
  if (row.status !== null) return row
  const { id, name, categoryId } = row
  return { id, name, categoryId }
}

function readId(text) {
  if (!/^\d{1,19}$/.test(text) || BigInt(text) > int64Max) return undefined
  return isExact ? BigInt(text) : Number(text)
}

function readNewPet(text) {
  try {
    // JSON.parse rounds long integers; a parser that does not is slower.
    const { name, categoryId, status } =
      isExact && /\d{16}/.test(text) ? parse(text, null, readNumber) : JSON.parse(text)
    const isName = typeof name === 'string' && name.length <= 1_000 && /\S/.test(name)
    return isName && isInt64(categoryId) && statuses.includes(status) ? { name, categoryId, status } : undefined
  } catch {
    return undefined
  }
}

const readNumber = digits => (/^-?\d+$/.test(digits) ? BigInt(digits) : Number(digits))

function isInt64(value) {
  return typeof value === 'bigint' ? value >= -int64Max - 1n && value <= int64Max : Number.isInteger(value)
}

/** For JSON.stringify, which has no form for a bigint. */
export function exactJson(pet) {
  if (!isExact) return pet
  const { id, name, categoryId, status } = pet
  return { id: exactNumber(id), name, categoryId: exactNumber(categoryId), status }
}

function exactNumber(value) {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : JSON.rawJSON(String(value))
}

const columns = 'id, name, category_id AS "categoryId", status'

/** A store of bun:sqlite or better-sqlite3, with every commit on disk. */
export function openSqlite(Database) {
  const database = new Database(databaseUrl.replace('sqlite:', ''))
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  const prepare = sql => database.prepare(sql).safeIntegers(isExact)
  const list = prepare(`SELECT ${columns} FROM pets WHERE id > ? ORDER BY id LIMIT ?`)
  const listByStatus = prepare(`SELECT ${columns} FROM pets WHERE status = ? AND id > ? ORDER BY id LIMIT ?`)
  const get = prepare(`SELECT ${columns} FROM pets WHERE id = ?`)
  const create = prepare(`INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?) RETURNING ${columns}`)
  return {
    list: (status, after, rows) =>
      status === undefined ? list.all(after, rows) : listByStatus.all(status, after, rows),
    get: id => get.get(id),
    create: (name, categoryId, status) => create.get(name, categoryId, status),
  }
}
