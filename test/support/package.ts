import { expect } from 'bun:test'
import { cpSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectFolder, run, temporaryFolder } from './process.ts'

/** Long enough for npm to fetch Bun from the registry. */
export const npmWaitMs = 150_000

/** The variables by which npm and apt-get reach their servers from this machine. */
export const network = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value && /^(https?_proxy|no_proxy|node_extra_ca_certs|npm_config_(registry|userconfig|cache))$/i.test(name)
      ? [[name, value]]
      : [],
  ),
)

/** Runs npm, which must succeed, and returns what it printed to stdout. */
export async function npm(cwd: string, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run(['npm', ...args], { cwd, env: network, waitMs: npmWaitMs })
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
  return stdout
}

/** A folder for programs that import `petstore-client`: a clone has no built package, so its name leads to the sources. */
export function programFolder() {
  const folder = temporaryFolder()
  const compilerOptions = {
    // Not every example uses all that it imports.
    noUnusedLocals: false,
    typeRoots: [join(projectFolder, 'node_modules/@types')],
    paths: { 'petstore-client': [join(projectFolder, 'src/client/index.ts')] },
  }
  const write = (name: string, text: string) => writeFileSync(join(folder.path, name), text)
  const strict = join(projectFolder, 'tsconfig.json')
  write('tsconfig.json', JSON.stringify({ extends: strict, compilerOptions, include: ['*.ts'] }))
  return {
    write,
    /** Runs a program of the folder. */
    run: (name: string, env: Record<string, string>) =>
      run([process.execPath, '--no-env-file', name], { cwd: folder.path, env }),
    async expectTypesToPass(): Promise<void> {
      const tsc = await run([join(projectFolder, 'node_modules/.bin/tsc'), '--project', '.'], { cwd: folder.path })
      expect(tsc).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

/** Packs the server, or the package in the folder `from`. */
export async function pack(into: string, from = projectFolder) {
  const [packed] = JSON.parse(await npm(from, 'pack', '--json', '--pack-destination', into)) as [
    { filename: string; unpackedSize: number; files: { path: string }[] },
  ]
  return { ...packed, files: packed.files.map(({ path }) => path) }
}

/** Builds the client's package and packs it. In a copy of the project, because another test may build at the same time. */
export async function packClient(into: string) {
  using copy = temporaryFolder()
  const sources = ['LICENSE', 'package.json', 'package-lock.json', 'scripts', 'src']
  for (const name of [...sources, 'tsconfig.json', 'tsconfig.client.json']) {
    cpSync(join(projectFolder, name), join(copy.path, name), { recursive: true })
  }
  symlinkSync(join(projectFolder, 'node_modules'), join(copy.path, 'node_modules'))
  await npm(copy.path, 'run', 'build')
  return await pack(into, join(copy.path, 'dist/petstore-client'))
}
