import { backUp } from '../store/open.ts'
import type { Io } from './io.ts'
import { startProgress } from './progress.ts'
import { type Flags, readStoreSettings } from './settings.ts'

export async function backUpStore(file: string, flags: Flags, io: Io): Promise<void> {
  const databaseUrl = readStoreSettings(flags, io.env)
  const progress = startProgress('Copying the store', io)
  try {
    const { pets, bytes } = await backUp(databaseUrl, file, progress.update)
    progress.stop()
    const size = `${pets.toLocaleString('en')} animals in ${bytes.toLocaleString('en')} bytes`
    io.err(`${file} holds ${size}; it was read through and is sound\n`)
  } finally {
    progress.stop()
  }
}
