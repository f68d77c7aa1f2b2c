import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** A file that gets its name only when it is whole; what has none by the end is gone: `using file = createNewFile(…)`. */
export interface NewFile extends Disposable {
  /** Where to write until then. */
  readonly path: string
  /** Brings it to the disk, then gives it its name, and answers how many bytes it has. */
  publish(): number
}

/** Beside its target, so that it can be given that name in one step; readable by its owner only, from the start. */
export function createNewFile(target: string): NewFile {
  if (existsSync(target)) throw Object.assign(new Error('it exists'), { code: 'EEXIST' })
  const path = `${target}.partial-${process.pid}`
  closeSync(openSync(path, 'wx', 0o600))
  return {
    path,
    publish() {
      sync(path)
      giveName(path, target)
      sync(dirname(target))
      return statSync(target).size
    },
    [Symbol.dispose]: () => rmSync(path, { force: true }),
  }
}

/** A link, unlike a rename, never replaces what is there; but not every file system has links. */
function giveName(path: string, target: string): void {
  try {
    linkSync(path, target)
  } catch (error) {
    if (!/^(EPERM|ENOTSUP|ENOSYS)$/.test((error as { code?: string }).code ?? '') || existsSync(target))
      throw error
    renameSync(path, target)
  }
}

function sync(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** Why a new file could not be written, and what to do; undefined where the code tells of something else. */
export function newFileMend(code: string): string | undefined {
  return mends.find(([codes]) => codes.test(code))?.[1]
}

const mends: readonly (readonly [RegExp, string])[] = [
  [/^EEXIST$/, 'there is a file of this name; choose another one'],
  [/^(ENOENT|ENOTDIR)$/, 'its folder does not exist; create it'],
  [/^(EACCES|EPERM|EROFS)$/, 'no right to write there'],
  [/^(ENOSPC|EDQUOT)$/, 'the disk is full'],
]
