import { expect } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { petstore, program, run, temporaryFolder } from '../support/process.ts'
import { spawnPetstore } from './child.ts'

const preload = fileURLToPath(new URL('preload.ts', import.meta.url))
/** Makes the program run test/cli/preload.ts first. */
const preloaded = {
  BUN_OPTIONS: `--preload ${preload.replaceAll(' ', '\\ ')}`,
  // The runtime collects garbage as on a machine with 50 MB, so its peak of memory shows what is in use.
  BUN_JSC_forceRAMSize: '50000000',
}
/** Makes it wait for a signal after this batch. */
const heldAt = (batch: number) => ({ ...preloaded, PETSTORE_TEST_HOLD: String(batch) })
export const held = heldAt(1)

/** A folder with animals.ndjson in it, where every command works on the store pets.db: `using place = workplace(…)`. */
export function workplace(lines: string | Uint8Array) {
  const folder = temporaryFolder()
  writeFileSync(join(folder.path, 'animals.ndjson'), lines)
  const surroundings = { cwd: folder.path, env: { DATABASE_URL: 'sqlite:pets.db' } }
  return {
    path: folder.path,
    surroundings,
    file: (name: string) => join(folder.path, name),
    petstore: (...args: string[]) => petstore(args, surroundings),
    shell: (line: string) => run(['sh', '-c', line.replaceAll('petstore', `'${program}'`)], surroundings),
    exported: async () => (await petstore(['export'], surroundings)).stdout,
    /** Starts a command whose stdin stays open. */
    start: (args: readonly string[], env = preloaded) =>
      spawnPetstore(args, { cwd: folder.path, env: { ...surroundings.env, ...env } }),
    /** Starts a command that, after this batch, waits for a signal. */
    async startHeld(args: readonly string[], batch = 1) {
      const child = this.start(args, heldAt(batch))
      const { value } = await child.stdout.pipeThrough(new TextDecoderStream()).getReader().read()
      expect(value).toBe('held\n')
      return child
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}
