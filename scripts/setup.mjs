// Installs exactly what package-lock.json lists, unless node_modules already has it.
// Plain JavaScript for Node, because it runs before Bun is installed. `--dev` also installs the tools for tests and checks.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const wantsDev = process.argv.includes('--dev')

if (Number(process.versions.node.split('.')[0]) < 20) {
  fail(`Node ${process.versions.node} is too old: petstore needs Node 20 or newer`)
}
if (isLacking()) install()
if (run('node_modules/.bin/bun', ['--version'], 'ignore') !== 0) {
  // npm may be set to run no install scripts; Bun's is needed to put its program into place.
  if (run(process.execPath, ['node_modules/bun/install.js'], 'inherit') !== 0) {
    fail('Bun was installed but does not run here; npm rebuild bun shows why')
  }
}

function isLacking() {
  const wanted = packagesIn('package-lock.json')
  const installed = packagesIn('node_modules/.package-lock.json')
  return Object.entries(wanted).some(([path, { version, dev, optional }]) => {
    // Optional ones are for one platform or another.
    if (path === '' || optional || (dev && !wantsDev)) return false
    return installed[path]?.version !== version
  })
}

function packagesIn(file) {
  try {
    return JSON.parse(readFileSync(`${root}${file}`, 'utf8')).packages
  } catch {
    return {}
  }
}

function install() {
  console.error(wantsDev ? 'Installing the tools for tests and checks…' : 'Installing the runtime…')
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error', ...(wantsDev ? [] : ['--omit=dev'])]
  if (run('npm', args, 'inherit') !== 0) fail('npm ci failed; the lines above say why')
}

function run(command, args, output) {
  return spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', output === 'ignore' ? 'ignore' : 2, output],
  }).status
}

function fail(message) {
  console.error(`petstore: ${message}`)
  process.exit(1)
}
