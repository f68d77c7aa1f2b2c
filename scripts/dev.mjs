// `npm run dev`: the server, restarted whenever a file under src changes. Arguments go to `petstore serve`.
// Not `bun --watch`: after Ctrl-C it would wait for the next change instead of ending.
import { spawn } from 'node:child_process'
import { watch } from 'node:fs'
import { join } from 'node:path'

let isStopping = false
let isRestarting = false
let pause

watch('src', { recursive: true }, (_event, file) => {
  if (!file || file.endsWith('.test.ts')) return
  // Editors write a file in several steps.
  clearTimeout(pause)
  pause = setTimeout(restart, 100, file)
})

// Only now: no change while it starts is missed.
let server = start()

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    isStopping = true
    if (hasEnded(server)) process.exit(0)
    server.kill('SIGTERM')
  })
}

function start() {
  const child = spawn(join('bin', 'petstore'), ['serve', ...process.argv.slice(2)], { stdio: 'inherit' })
  child.on('exit', code => {
    if (isStopping) process.exit(code ?? 0)
  })
  return child
}

/** A process that was killed by a signal has no exit code. */
function hasEnded({ exitCode, signalCode }) {
  return exitCode !== null || signalCode !== null
}

function restart(file) {
  if (isStopping || isRestarting) return
  isRestarting = true
  console.error(`${file} changed: restarting`)
  const next = () => {
    isRestarting = false
    server = start()
  }
  if (hasEnded(server)) return next()
  server.once('exit', next)
  server.kill('SIGTERM')
}
