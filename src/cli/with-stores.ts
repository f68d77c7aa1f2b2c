import { openStores } from '../store/open.ts'
import type { Stores } from '../store.ts'
import type { Io } from './io.ts'
import { type Flags, readStoreSettings } from './settings.ts'

/** Opens the store that a command was pointed to, does the work, and closes it. A new store may be a mistake: it is reported. */
export async function withStores(
  flags: Flags,
  io: Io,
  options: { readonly create: boolean },
  work: (stores: Stores) => Promise<void>,
): Promise<void> {
  const stores = await openStores(readStoreSettings(flags, io.env), options)
  try {
    if (stores.createdAt !== undefined) io.err(`Created a new store at ${stores.createdAt}\n`)
    await work(stores)
  } finally {
    await stores.close()
  }
}
