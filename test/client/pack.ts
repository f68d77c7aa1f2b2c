import { downloadMs, network, projectFolder, readOutput } from '../support/process.ts'

/** Runs npm, which must succeed, and returns what it printed to stdout. */
export const npm = (cwd: string, ...args: string[]) =>
  readOutput(['npm', ...args], { cwd, env: network, waitMs: downloadMs })

/** Packs the server, or the package in the folder `from`. */
export async function pack(into: string, from = projectFolder) {
  const [packed] = JSON.parse(await npm(from, 'pack', '--json', '--pack-destination', into)) as [
    { filename: string; unpackedSize: number; files: { path: string }[] },
  ]
  return { ...packed, files: packed.files.map(({ path }) => path) }
}
