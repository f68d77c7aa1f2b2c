import { expect } from 'bun:test'
import { cpSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { projectFolder, run, temporaryFolder } from './process.ts'

/** Long enough for npm to fetch Bun from the registry. */
export const npmWaitMs = 150_000

/** The variables by which npm reaches its registry from this machine. */
export const network = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value && /^(https?_proxy|no_proxy|node_extra_ca_certs|npm_config_(registry|userconfig|cache))$/i.test(name)
      ? [[name, value]]
      : [],
  ),
)

/** Runs `npm pack` and returns the name of the package and the paths in it. */
export async function pack(folder: string): Promise<{ filename: string; files: string[] }> {
  using copy = temporaryFolder()
  // Packing builds dist: in a copy of the project, so that another test can pack at the same time.
  for (const name of readdirSync(projectFolder)) {
    if (/^(\.git|bench|coverage|data|dist|node_modules)$/.test(name)) continue
    cpSync(join(projectFolder, name), join(copy.path, name), { recursive: true })
  }
  symlinkSync(join(projectFolder, 'node_modules'), join(copy.path, 'node_modules'))
  const command = ['npm', 'pack', '--json', '--pack-destination', folder]
  const { exitCode, stdout, stderr } = await run(command, { cwd: copy.path, env: network, waitMs: npmWaitMs })
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }]
  return { filename: packed.filename, files: packed.files.map(({ path }) => path) }
}

/** Packs the project and installs it, as a user would, into a folder that holds nothing else. */
export async function installPackage(folder: string): Promise<void> {
  const { filename } = await pack(folder)
  await Bun.write(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  const command = ['npm', 'install', '--no-audit', '--no-fund', `./${filename}`]
  expect(await run(command, { cwd: folder, env: network, waitMs: npmWaitMs })).toMatchObject({ exitCode: 0 })
}
