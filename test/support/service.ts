import { Database } from 'bun:sqlite'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { SQL } from 'bun'
import { issueApiKey, type NewApiKey } from '../../src/api-key.ts'
import { App, type AppParts } from '../../src/http/app.ts'
import { openApiDocument, type PublishedUrls, publishedServers } from '../../src/http/openapi.ts'
import { listen } from '../../src/http/server.ts'
import type { Log, LogFields } from '../../src/log.ts'
import type { Pet } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import { sharedDatabase } from './postgres.ts'
import { temporaryFolder } from './process.ts'

export type StoreKind = 'postgres' | 'sqlite'

/** `npm test` runs the tests over HTTP once on each store. */
export const storeUnderTest: StoreKind = process.env['PETSTORE_TEST_STORE'] === 'postgres' ? 'postgres' : 'sqlite'

export interface CallInit {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array<ArrayBuffer> | ReadableStream
  /** The key to send; null for none, absent for one that may do everything. */
  readonly key?: string | null
}

export type Service = Awaited<ReturnType<typeof startService>>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: ReturnType<typeof JSON.parse>
}

/** Stores animals with ids of our choice. The store must be empty. */
export async function keepAnimals({ stores }: Service, animals: readonly Pet[]): Promise<void> {
  const batches = (async function* () {
    yield animals
  })()
  await stores.transfer.load(batches, 'keep')
}

/** The whole service in this process: a real database, a real port on 127.0.0.1. */
export async function startService(options: Partial<Omit<AppParts, 'log' | 'build' | 'activity'>> = {}) {
  const database = await newTestDatabase(storeUnderTest)
  const stores = await openStores(database.url, { create: true })
  const logged: ({ readonly message: string } & LogFields)[] = []
  const log: Log = {
    isOn: () => true,
    write: (_level, message, fields = {}) => void logged.push({ message, ...fields }),
    request: (_level, fields) => void logged.push({ message: 'request', ...fields }),
  }
  const build = { version: '1.2.3', commit: 'abc1234' }
  const parts = { ...stores, ...options, log, build }
  const app = new App(parts)
  const listener = listen(app, { host: '127.0.0.1', port: 0 })
  const origin = `http://127.0.0.1:${listener.port}`
  const check = createCheck(parts)

  async function newKey(given: Partial<Pick<NewApiKey, 'name' | 'permission' | 'expiresAt'>> = {}): Promise<string> {
    const createdAt = new Date()
    const { key, record } = issueApiKey({ name: 'test', permission: 'read-write', createdAt, ...given })
    await stores.keys.create(record)
    return key
  }
  const everything = await newKey()

  return {
    origin,
    port: listener.port,
    database,
    stores,
    /** Every line of the log: its message and its fields. */
    logged,
    /** A key that may do everything. */
    key: everything,
    newKey,
    /** Sends a request and checks the response against the OpenAPI document. */
    async call(path: string, init: CallInit = {}): Promise<Answer> {
      const { method = 'GET', headers = {}, body, key = everything } = init
      const authorization = key === null ? {} : { authorization: `Bearer ${key}` }
      const sent = { method, headers: { ...authorization, ...headers }, ...(body !== undefined && { body }) }
      const response = await fetch(`${origin}${path}`, { ...sent, redirect: 'manual' })
      const text = await response.text()
      check(method, path, response, text)
      const json = text === '' ? undefined : JSON.parse(text)
      return { status: response.status, headers: response.headers, text, json }
    },
    flush: () => app.flush(),
    async [Symbol.asyncDispose]() {
      await listener.stop(0)
      await stores.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** An empty database of its own, gone with the test. */
export interface AnyDatabase extends AsyncDisposable {
  /** For DATABASE_URL. */
  readonly url: string
  /** Whether the stored data contains the text anywhere. */
  holds(text: string): Promise<boolean>
  /** Makes the next animal get an id above this one. */
  setLastId(id: bigint): Promise<void>
}

export const newTestDatabase = (store: StoreKind): Promise<AnyDatabase> =>
  store === 'postgres' ? postgresDatabase() : sqliteDatabase()

async function sqliteDatabase(): Promise<AnyDatabase> {
  const folder = temporaryFolder()
  const file = join(folder.path, 'pets.db')
  return {
    url: `sqlite:${file}`,
    holds: async text => [file, `${file}-wal`].some(path => existsSync(path) && readFileSync(path).includes(text)),
    async setLastId(id) {
      using database = new Database(file, { readwrite: true, strict: true })
      database.run("DELETE FROM sqlite_sequence WHERE name = 'pets'")
      database.run("INSERT INTO sqlite_sequence VALUES ('pets', ?)", [id])
    },
    [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
  }
}

async function postgresDatabase(): Promise<AnyDatabase> {
  const database = await sharedDatabase()
  return {
    url: database.url,
    async holds(text) {
      await using sql = new SQL(database.url, { max: 1 })
      const rows = ['pets', 'api_keys', 'creation_keys'].map(table => `SELECT to_json(${table})::text FROM ${table}`)
      return JSON.stringify(await sql.unsafe(rows.join(' UNION ALL '))).includes(text)
    },
    async setLastId(id) {
      await using sql = new SQL(database.url, { max: 1 })
      await sql`UPDATE pet_id_floor SET last_id = ${id}`
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

interface DescribedResponse {
  readonly description: string
  readonly headers: Readonly<Record<string, { readonly $ref: string }>>
  readonly content: { readonly 'application/json': { readonly schema: { readonly $ref: string } } }
}

/** Headers that a response has only sometimes. */
const sentSometimes =
  /^(idempotency-replayed|link|preference-applied|ratelimit|ratelimit-policy|retry-after|x-next-cursor)$/

/** Headers for the connection, caches and browsers: no operation describes them. */
const undescribedHeader =
  /^(access-control-.*|cache-control|connection|content-.*|date|transfer-encoding|vary|x-content-type-options)$/

/** Compares responses with our own OpenAPI document: status, type, headers, body. Throws if one differs. */
export function createCheck(urls: PublishedUrls) {
  const document = openApiDocument(publishedServers(urls))
  const { schemas, responses } = document.components
  // The document lets clients accept additions. Our own responses have none.
  const closed = (schema: object) => ({ ...schema, additionalProperties: false })
  const exact = { ...schemas, Pet: closed(schemas.Pet), Error: closed(schemas.Error) }
  const ajv = new Ajv2020({ strict: true, allErrors: true, formats: { int64: true } })
  ajv.addSchema({ $id: 'openapi', components: { ...document.components, schemas: exact } }, 'openapi')
  ajv.addVocabulary(['components', 'x-extensible-enum'])
  const codes = schemas.Error.properties.code['x-extensible-enum']

  function validate(ref: string, value: unknown, what: string): void {
    const check = ajv.getSchema(`openapi${ref}`)
    if (!check?.(value)) throw new Error(`${what} is not as described: ${ajv.errorsText(check?.errors)}`)
  }

  function checkHeaders(described: DescribedResponse, response: Response, what: string): void {
    const names = Object.keys(described.headers).map(name => name.toLowerCase())
    const sent = [...response.headers.keys()].filter(name => !undescribedHeader.test(name))
    const undescribed = sent.filter(name => !names.includes(name))
    // Errors also have RateLimit and Preference-Applied, which would double the size of generated clients.
    if (response.ok && undescribed.length > 0)
      throw new Error(`${what}: headers that are not described: ${undescribed.join(', ')}`)
    const missing = names.filter(name => !sentSometimes.test(name) && !response.headers.has(name))
    if (missing.length > 0) throw new Error(`${what}: headers that are missing: ${missing.join(', ')}`)
  }

  /** The response that the operation describes, and whether it is for this status alone. */
  function describedResponse(method: string, path: string, status: number) {
    // The client resolves dots before it sends the path.
    const bare = new URL(path, 'http://localhost').pathname
    if (!/^\/v1\/pets(?:\/[^/]+)?$/.test(bare)) return undefined
    const operations: Record<string, { responses: Record<string, DescribedResponse | { $ref: string } | undefined> }> =
      document.paths[bare === '/v1/pets' ? '/pets' : '/pets/{petId}']
    // A method that the path does not support has no operation: its 405 is the default of GET.
    const described = (operations[method === 'HEAD' ? 'get' : method.toLowerCase()] ?? operations['get'])?.responses
    const own = described?.[String(status)]
    const found = own ?? (status >= 400 ? described?.['default'] : undefined)
    if (!found) throw new Error(`${method} ${path}: status ${status} is not described`)
    const shared: Record<string, DescribedResponse | undefined> = responses
    const response = '$ref' in found ? shared[found.$ref.slice('#/components/responses/'.length)] : found
    if (!response) throw new Error(`${method} ${path}: status ${status} refers to nothing`)
    return { isDefault: own === undefined, response }
  }

  return (method: string, path: string, response: Response, text: string): void => {
    const what = `${method} ${path} → ${response.status}`
    const type = response.headers.get('content-type')
    if (type !== 'application/json') throw new Error(`${what}: the content type is ${type}`)
    for (const name of ['x-request-id', 'cache-control', 'x-content-type-options']) {
      if (!response.headers.has(name)) throw new Error(`${what}: the header ${name} is missing`)
    }
    const described = describedResponse(method, path, response.status)
    // Statuses under default have different headers.
    if (described && !described.isDefault) checkHeaders(described.response, response, what)
    if (method === 'HEAD') return
    const body = JSON.parse(text)
    if (response.status >= 400) {
      validate('#/components/schemas/Error', body, what)
      if (!codes.includes(body.code)) throw new Error(`${what}: the code ${body.code} is not published`)
      if (body.status !== response.status) throw new Error(`${what}: the Error's status is ${body.status}`)
    }
    if (!described) return
    validate(described.response.content['application/json'].schema.$ref, body, what)
    const names = response.ok || described.response.description.includes(`\`${body.code}\``)
    if (!names) throw new Error(`${what}: the description does not list the code ${body.code}`)
  }
}
