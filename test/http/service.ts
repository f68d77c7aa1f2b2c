import { appendFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { issueApiKey, type NewApiKey } from '../../src/api-key.ts'
import { withAdvice } from '../../src/cli/advice.ts'
import { App, type AppParts } from '../../src/http/app.ts'
import { type PeerLookup, splitUrl } from '../../src/http/exchange.ts'
import { listen } from '../../src/http/server.ts'
import type { Log, LogFields } from '../../src/log.ts'
import type { Pet } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import type { PetStore } from '../../src/store-contract.ts'
import { type Engine, newTestDatabase } from '../support/engines.ts'
import { outputFile } from '../support/process.ts'
import { expectDescribed } from './described.ts'

/** The key is null for none, and absent for one that may do everything under /v1. */
type CallInit = Pick<RequestInit, 'method' | 'body'> & { headers?: Record<string, string>; key?: string | null }

export type Service = Awaited<ReturnType<typeof startService>>

type ServiceOptions = Partial<typeof plainParts> & { readonly engine?: Engine; readonly pets?: PetStore }

/** Stores animals with ids of our choice. The store must be empty. */
export async function keepAnimals({ stores }: Pick<Service, 'stores'>, animals: readonly Pet[]): Promise<void> {
  const batches = (async function* () {
    yield animals
  })()
  await stores.transfer.load(batches, 'keep')
}

/** Of an app without any setting. */
export const plainParts: Omit<AppParts, 'stores' | 'log'> = {
  advice: withAdvice,
  build: { version: '1.2.3', commit: 'abc1234' },
  sweep: { keysDeleted: 0, completedAtMs: Date.now() },
  pages: new Map(),
  environmentKey: undefined,
  publicUrl: undefined,
  stagingUrl: undefined,
  rateLimit: undefined,
  corsOrigins: undefined,
  trustedProxies: undefined,
}

/** Compares each of its responses with the OpenAPI document. */
class CheckedApp extends App {
  readonly problems: unknown[] = []

  override async fetch(request: Request, peers?: PeerLookup): Promise<Response> {
    const response = await super.fetch(request, peers)
    const { path } = splitUrl(request.url)
    try {
      for (const name of ['x-request-id', 'cache-control', 'x-content-type-options']) {
        if (!response.headers.has(name)) throw new Error(`${path}: the header ${name} is missing`)
      }
      if (/^\/v1(\/|$)/.test(path)) expectDescribed(request.method, path, response, await response.clone().text())
    } catch (problem) {
      // A client that has gone gets no response.
      if (!request.signal.aborted) this.problems.push(problem)
    }
    return response
  }
}

/** The whole service in this process. At its end, it throws if a response was not as the OpenAPI document says. */
export async function startService({ engine = 'SQLite', ...options }: ServiceOptions = {}) {
  const database = await newTestDatabase(engine)
  const stores = await openStores(database.url, { create: true })
  const logged: ({ readonly message: string } & LogFields)[] = []
  const output = outputFile('service')
  const log: Log = {
    isOn: () => true,
    write: (_level, message, fields = {}) => {
      logged.push({ message, ...fields })
      appendFileSync(output, `${inspect(logged.at(-1), { breakLength: Infinity })}\n`)
    },
  }
  const { pets = stores.pets, ...parts } = options
  const app = new CheckedApp({ ...plainParts, ...parts, stores: { ...stores, pets }, log })
  const listener = listen(app, { host: '127.0.0.1', port: 0 })
  const origin = `http://127.0.0.1:${listener.port}`

  async function newKey(given: Partial<Pick<NewApiKey, 'name' | 'permission' | 'expiresAt'>> = {}): Promise<string> {
    const createdAt = new Date()
    const { key, record } = issueApiKey({ name: 'test', permission: 'read-write', createdAt, ...given })
    await stores.keys.create(record)
    return key
  }
  const everything = await newKey({ permission: 'manage' })

  return {
    origin,
    port: listener.port,
    database,
    stores,
    /** Every line of the log: its message and its fields. */
    logged,
    /** A key that may do everything under /v1. */
    key: everything,
    newKey,
    async call(path: string, { key = everything, ...init }: CallInit = {}) {
      const headers = { ...(key !== null && { authorization: `Bearer ${key}` }), ...init.headers }
      const response = await fetch(`${origin}${path}`, { ...init, headers, redirect: 'manual' })
      const text = await response.text()
      const json = text === '' ? undefined : JSON.parse(text)
      return { status: response.status, headers: response.headers, text, json }
    },
    async [Symbol.asyncDispose]() {
      await listener.stop(0)
      await stores.close()
      await database[Symbol.asyncDispose]()
      for (const problem of app.problems) throw problem
    },
  }
}
