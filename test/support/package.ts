import { expect } from 'bun:test'
import { join } from 'node:path'
import { projectFolder, run } from './process.ts'

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

/** Packs the project and installs it, as a user would, into a folder that holds nothing else. */
export async function installPackage(folder: string): Promise<void> {
  const surroundings = { env: network, waitMs: npmWaitMs }
  const pack = ['npm', 'pack', '--json', '--pack-destination', folder]
  const packed = await run(pack, { ...surroundings, cwd: projectFolder })
  expect(packed).toMatchObject({ exitCode: 0 })
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }]
  await Bun.write(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  const installed = await run(['npm', 'install', '--no-audit', '--no-fund', `./${filename}`], {
    ...surroundings,
    cwd: folder,
  })
  expect(installed).toMatchObject({ exitCode: 0 })
}
