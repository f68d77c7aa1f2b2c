import { expect } from 'bun:test'
import { join } from 'node:path'

const storeModule = join(import.meta.dir, '../../src/store/open.ts')

/** So many processes open the store at the same moment, as several instances would; each adds an animal, and none may fail. */
export async function openAtOnce(url: string, count: number): Promise<void> {
  const script = `const { openStores } = await import(${JSON.stringify(storeModule)})
    const stores = await openStores(${JSON.stringify(url)}, { create: true })
    await stores.pets.create({ name: 'x', categoryId: 1n })
    await stores.close()`
  const processes = Array.from({ length: count }, () =>
    Bun.spawn([process.execPath, '--no-env-file', '-e', script], { stdout: 'pipe', stderr: 'pipe' }),
  )
  const errors = await Promise.all(processes.map(async child => (await child.exited) && child.stderr.text()))
  expect(errors).toEqual(Array.from({ length: count }, () => 0))
}
