// Installs what bench/package-lock.json names and bench/node_modules lacks; does nothing, quickly, where nothing is lacking.
// A benchmark goes on without it: whoever cannot be installed is left out, with a line that says so.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))

if (isLacking()) {
  say('Installing the contenders; one of them may have to be compiled, which takes some minutes…')
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 'inherit'] })
  if (status !== 0) say('petstore bench: npm install failed; the lines above say why')
}

function say(line) {
  process.stderr.write(`${line}\n`)
}

function isLacking() {
  const wanted = packagesIn('package-lock.json')
  const installed = packagesIn('node_modules/.package-lock.json')
  return Object.entries(wanted).some(([path, { version, optional }]) => {
    // Optional ones may not be for this platform.
    if (path === '' || optional) return false
    return installed[path]?.version !== version
  })
}

function packagesIn(file) {
  try {
    return JSON.parse(readFileSync(`${folder}${file}`, 'utf8')).packages
  } catch {
    return {}
  }
}
