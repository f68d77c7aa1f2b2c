import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './folder.ts'

/** A file system of its own in memory, of so many bytes, gone with the test. Root only. */
export function smallDisk(bytes: number): { readonly path: string; [Symbol.dispose](): void } {
  const folder = temporaryFolder()
  const path = join(folder.path, 'disk')
  mkdirSync(path)
  try {
    command('mount', '-t', 'tmpfs', '-o', `size=${bytes}`, 'petstore-test', path)
  } catch (error) {
    folder[Symbol.dispose]()
    throw error
  }
  return {
    path,
    [Symbol.dispose]() {
      // Lazy: whatever still holds a file of it open does not keep it in the tree.
      command('umount', '--lazy', path)
      folder[Symbol.dispose]()
    },
  }
}

/** With the immutable flag not even root can write to a file, open it for writing, or delete it. Root only. */
export function makeImmutable(files: readonly string[]): Disposable {
  const made: string[] = []
  const release = () => {
    for (const file of made) command('chattr', '-i', file)
  }
  try {
    for (const file of files) {
      command('chattr', '+i', file)
      made.push(file)
    }
  } catch (error) {
    release()
    throw error
  }
  return { [Symbol.dispose]: release }
}

/** Why such a thing cannot be had here: undefined where it can. */
export function obstacleTo(attempt: () => Disposable): string | undefined {
  try {
    attempt()[Symbol.dispose]()
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function command(...words: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(words)
  const [why = ''] = stderr.toString().split('\n')
  // The same line on every machine: without the folder's random name.
  if (exitCode !== 0) throw new Error(why.replaceAll(words.at(-1) ?? '', '…'))
}
