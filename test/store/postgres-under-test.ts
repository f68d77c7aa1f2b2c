import { openStores } from '../../src/store/open.ts'
import { sharedDatabase } from '../support/with-postgres.ts'
import type { StoreUnderTest } from './contract.ts'

export async function postgresUnderTest(): Promise<StoreUnderTest> {
  const database = await sharedDatabase()
  return {
    open: async () => openStores(database.url, { create: true }),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
