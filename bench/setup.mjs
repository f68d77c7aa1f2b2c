// Installs the contenders from bench/package-lock.json into bench/node_modules, unless they are installed already. If
// that fails the benchmark still runs, without the contenders that are missing.
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))
const modifiedMs = file => statSync(`${folder}${file}`, { throwIfNoEntry: false })?.mtimeMs ?? 0

// npm writes this file at the end of an installation.
if (modifiedMs('node_modules/.package-lock.json') < modifiedMs('package-lock.json')) {
  process.stderr.write('Installing the contenders; compiling one of them can take some minutes…\n')
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 'inherit'] })
  if (status !== 0) process.stderr.write('petstore bench: npm ci failed; see the lines above\n')
}
