// `bin/petstore` runs this first if a test asks for it. It prints on stdout, which import and export to a file do not use.
import { readFileSync, writeSync } from 'node:fs'

// The number of the batch after which a command waits for a signal. SIGUSR2 lets it continue.
const heldBatch = Number(process.env['PETSTORE_TEST_HOLD'])
if (heldBatch > 0) {
  // After each batch, it would give way to other events.
  const goOn = globalThis.setImmediate
  let batches = 0
  const hold = (next: () => void) => {
    if (++batches !== heldBatch) return void goOn(next)
    const alive = setInterval(() => {}, 60_000)
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGUSR2']) process.once(signal, () => goOn(next, clearInterval(alive)))
    writeSync(1, 'held\n')
  }
  globalThis.setImmediate = Object.assign(hold, goOn) as typeof goOn
  // It does not learn that its thread is done.
  Worker.prototype.addEventListener = () => {}
}

// The most memory that it has occupied, as the system counts it.
process.on('exit', () => {
  const [peak] = /^VmHWM:.*$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  writeSync(1, `${peak}\n`)
})
