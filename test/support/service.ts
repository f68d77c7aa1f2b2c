import { issueApiKey, type NewApiKey } from '../../src/api-key.ts'
import { type AppParts, createApp } from '../../src/http/app.ts'
import { listen } from '../../src/http/serve.ts'
import type { Log, LogFields } from '../../src/log.ts'
import type { Pet } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import type { Stores } from '../../src/store.ts'
import { createConformance } from './conformance.ts'
import { type AnyDatabase, newTestDatabase, type StoreKind } from './database.ts'

export type ServiceOptions = Partial<
  Pick<
    AppParts,
    'pets' | 'keys' | 'environmentKey' | 'rateLimit' | 'corsOrigins' | 'pages' | 'publicUrl' | 'stagingUrl'
  >
> & {
  /** Where it matters which one; else the one that the tests are run on. */
  readonly store?: StoreKind
}

export interface CallInit {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array<ArrayBuffer> | ReadableStream
  /** The key to send; null for none, absent for one that may do everything. */
  readonly key?: string | null
}

export interface Service extends AsyncDisposable {
  readonly origin: string
  readonly port: number
  readonly database: AnyDatabase
  readonly stores: Stores
  /** Every line of the log: its message and its fields. */
  readonly logged: ({ readonly message: string } & LogFields)[]
  /** A key that may do everything. */
  readonly key: string
  newKey(options?: Partial<Pick<NewApiKey, 'name' | 'permission' | 'expiresAt'>>): Promise<string>
  /** Sends a request over the wire, and holds its answer against the OpenAPI document before handing it on. */
  call(path: string, init?: CallInit): Promise<Answer>
  flush(): Promise<void>
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: ReturnType<typeof JSON.parse>
}

/** Animals with ids of our choice, as if as many had come before. The store must hold none yet. */
export async function keepAnimals({ stores }: Service, animals: readonly Pet[]): Promise<void> {
  await stores.transfer.load(batchOf(animals), 'keep')
}

async function* batchOf(animals: readonly Pet[]) {
  yield animals
}

/** The whole service in this process: a real database, a real port on 127.0.0.1. */
export async function startService({ store, ...options }: ServiceOptions = {}): Promise<Service> {
  const database = await newTestDatabase(store)
  const stores = await openStores(database.url, { create: true })
  const logged: Service['logged'] = []
  const recorded: Log = {
    isOn: () => true,
    write(_level, message, fields = {}) {
      logged.push({ message, ...fields })
    },
    request(_level, fields) {
      logged.push({ message: 'request', ...fields })
    },
  }
  const parts = {
    ...stores,
    ...options,
    log: recorded,
  }
  const app = createApp(parts)
  const listener = listen(app, { host: '127.0.0.1', port: 0 })
  const origin = `http://127.0.0.1:${listener.port}`
  const conformance = createConformance(parts)

  async function newKey(given: Partial<NewApiKey> = {}): Promise<string> {
    const { key, record } = issueApiKey({
      name: 'test',
      permission: 'read-write',
      createdAt: new Date(),
      ...given,
    })
    await stores.keys.create(record)
    return key
  }
  const everything = await newKey()

  return {
    origin,
    port: listener.port,
    database,
    stores,
    logged,
    key: everything,
    newKey,
    async call(path, { method = 'GET', headers = {}, body, key = everything } = {}) {
      const authorization = key === null ? {} : { authorization: `Bearer ${key}` }
      const response = await fetch(`${origin}${path}`, {
        method,
        headers: { ...authorization, ...headers },
        redirect: 'manual',
        ...(body !== undefined && { body }),
      })
      const text = await response.text()
      conformance.check(method, path, response, text)
      const json = text === '' ? undefined : JSON.parse(text)
      return { status: response.status, headers: response.headers, text, json }
    },
    flush: () => app.flush(),
    async [Symbol.asyncDispose]() {
      await listener.stop(5_000)
      await stores.close()
      await database[Symbol.asyncDispose]()
    },
  }
}
