import { existsSync } from 'node:fs'
import { open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { SetupError } from '../errors.ts'
import { explain } from './advice.ts'

/**
 * Writes a file that gets its name when it is complete, and returns its size. Until then it is at another path in the
 * same folder, so that it can be renamed. Only its owner can read it. `what` begins the message if it cannot be
 * written.
 */
export async function writeNewFile<T>(target: string, what: string, write: (path: string) => Promise<T>) {
  const refuseExisting = () => {
    if (existsSync(target)) throw new SetupError(`${what}: the file exists; choose another name`)
  }
  refuseExisting()
  const path = `${target}.partial-${crypto.randomUUID().slice(0, 8)}`
  try {
    await writeFile(path, '', { flag: 'wx', mode: 0o600 })
    await using _ = { [Symbol.asyncDispose]: () => rm(path, { force: true }) }
    const result = await write(path)
    await sync(path)
    refuseExisting()
    await rename(path, target)
    await sync(dirname(target))
    return { result, bytes: (await stat(target)).size }
  } catch (error) {
    throw explain(what, error, [
      [/^(ENOENT|ENOTDIR)$/, 'its folder does not exist', 'create it'],
      [/^(EACCES|EPERM|EROFS)$/, 'no permission to write there'],
      [/^(ENOSPC|EDQUOT)$/, 'the disk is full'],
    ])
  }
}

async function sync(path: string): Promise<void> {
  await using handle = await open(path)
  await handle.sync()
}
