import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { pack } from '../client/pack.ts'
import { network, run, startServer, temporaryFolder, downloadMs as waitMs } from '../support/process.ts'
import { pasteCurl } from './child.ts'

/** A machine with Node and npm, the usual tools, and no Bun. */
async function machineWithoutBun(folder: string): Promise<Record<string, string>> {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  for (const tool of ['node', 'npm', 'npx', 'sh', 'env', 'dirname', 'readlink', 'uname', 'curl']) {
    const path = Bun.which(tool)
    if (!path) throw new Error(`${tool} is not on PATH, and this test needs it`)
    symlinkSync(path, join(bin, tool))
  }
  // npx never removes unpacked packages from its cache: use another cache, which shares only the downloads.
  const { stdout } = await run(['npm', 'config', 'get', 'cache'], { cwd: folder })
  const downloads = join(stdout.trim(), '_cacache')
  mkdirSync(downloads, { recursive: true })
  const cache = join(folder, 'cache')
  mkdirSync(cache)
  symlinkSync(downloads, join(cache, '_cacache'))
  return { ...network, PATH: bin, npm_config_cache: cache }
}

test('npx runs the package on a machine without Bun, and Ctrl-C ends all processes', async () => {
  using folder = temporaryFolder()
  const { filename, files } = await pack(folder.path)
  for (const file of ['bin/petstore', 'src/cli/main.ts', 'LICENSE']) expect(files).toContain(file)
  const stray = /\.test\.ts$|^(test|bench|data|dist|scripts|node_modules)\/|\.(db|log|tgz)\b|(^|\/)\.env/
  expect(files.filter(file => stray.test(file))).toEqual([])

  const env = await machineWithoutBun(folder.path)
  const cwd = join(folder.path, 'empty')
  mkdirSync(cwd)
  // npx reads an absolute path as a program, not as a package.
  const npx = ['npx', '--yes', `../${filename}`]
  await using server = await startServer({ command: [...npx, 'serve', '--port', '0'], cwd, env, waitMs })
  expect(server.stdout).toStartWith(`petstore ${manifest.version} serves `)
  expect(await pasteCurl(server, { cwd, env })).toMatchObject({ exitCode: 0, stdout: '[]\n' })
  // Like Ctrl-C in a terminal: npx gets the signal too.
  process.kill(-server.pid, 'SIGINT')
  await server.ended()
  await expect(fetch(server.url)).rejects.toThrow()
  expect(readdirSync(join(cwd, 'data'))).toEqual(['petstore.db'])
})
