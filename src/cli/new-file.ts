import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { codeOf, explained } from './output.ts'

/**
 * A file that gets its name when it is complete, and is deleted if it never is: `using file = createNewFile(…)`.
 * Until then it is at `path`, in the target's folder, so that it can be renamed. Only its owner can read it.
 */
export function createNewFile(target: string) {
  if (existsSync(target)) throw Object.assign(new Error('The file exists'), { code: 'EEXIST' })
  const path = `${target}.partial-${crypto.randomUUID().slice(0, 8)}`
  closeSync(openSync(path, 'wx', 0o600))
  return {
    path,
    /** Syncs the file, gives it its name and returns its size in bytes. */
    publish() {
      sync(path)
      linkOrRename(path, target)
      sync(dirname(target))
      return statSync(target).size
    },
    [Symbol.dispose]: () => rmSync(path, { force: true }),
  }
}

/** A link never replaces an existing file, unlike a rename, but not every file system has links. */
function linkOrRename(path: string, target: string): void {
  try {
    linkSync(path, target)
  } catch (error) {
    if (!/^(EPERM|ENOTSUP|ENOSYS)$/.test(codeOf(error)) || existsSync(target)) throw error
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

/** Explains a failure to write the file; any other error is returned unchanged. */
export function newFileProblem(what: string, error: unknown): unknown {
  return explained(what, error, [
    [/^EEXIST$/, 'the file exists; choose another name'],
    [/^(ENOENT|ENOTDIR)$/, 'its folder does not exist; create it'],
    [/^(EACCES|EPERM|EROFS)$/, 'no permission to write there'],
    [/^(ENOSPC|EDQUOT)$/, 'the disk is full'],
  ])
}
