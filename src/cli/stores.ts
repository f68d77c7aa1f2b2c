import { openStores } from '../store/open.ts'
import type { Stores } from '../store-contract.ts'
import type { Io } from './output.ts'
import { settings } from './settings.ts'

export const storeOptions = { databaseUrl: settings.databaseUrl, pooler: settings.databasePooler }

/** Opens the store, does the work and closes the store. Reports a new store: a wrong address would create one, too. */
export async function withStores<T>(
  { databaseUrl, ...options }: { databaseUrl: string; pooler: boolean; create: boolean },
  io: Io,
  work: (stores: Stores) => Promise<T>,
): Promise<T> {
  const stores = await openStores(databaseUrl, options)
  try {
    if (stores.newStorePath !== undefined) io.err(`Created a new store at ${stores.newStorePath}\n`)
    return await work(stores)
  } finally {
    await stores.close()
  }
}
