import { expect } from 'bun:test'
import { type Ended, petstore } from './process.ts'

/** One key of `keys list --json`. */
interface ListedKey {
  readonly name: string
  readonly firstCharacters: string
  readonly access: string
  readonly expiresAt: string | null
  readonly revokedAt: string | null
  readonly lastUsedAt: string | null
  readonly deprecatedUses: number
  readonly deprecatedLastUsedAt: string | null
}

/** Makes a key on the command line, in the store of the folder `cwd`. */
export async function createKey(cwd: string, name: string, ...options: string[]): Promise<string> {
  const { exitCode, stdout } = await petstore(['keys', 'create', '--name', name, ...options], { cwd })
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(/^pets_\w{36}\n$/) })
  return stdout.trimEnd()
}

export async function listKeys(cwd: string): Promise<readonly ListedKey[]> {
  const { exitCode, stdout, stderr } = await petstore(['keys', 'list', '--json'], { cwd })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return JSON.parse(stdout)
}

export function revokeKey(cwd: string, which: string): Promise<Ended> {
  return petstore(['keys', 'revoke', which], { cwd })
}
