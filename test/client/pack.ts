import { expect } from 'bun:test'
import { network, npmWaitMs, projectFolder, run } from '../support/process.ts'

/** Runs npm, which must succeed, and returns what it printed to stdout. */
export async function npm(cwd: string, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run(['npm', ...args], { cwd, env: network, waitMs: npmWaitMs })
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
  return stdout
}

/** Packs the server, or the package in the folder `from`. */
export async function pack(into: string, from = projectFolder) {
  const [packed] = JSON.parse(await npm(from, 'pack', '--json', '--pack-destination', into)) as [
    { filename: string; unpackedSize: number; files: { path: string }[] },
  ]
  return { ...packed, files: packed.files.map(({ path }) => path) }
}
