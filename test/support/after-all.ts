import { afterAll, setDefaultTimeout } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { stopSharedCluster } from './postgres.ts'

// A busy machine must not fail a test. Without --parallel, Bun runs this for the first file only.
setDefaultTimeout(60_000)
afterAll(stopSharedCluster)
afterAll(() => {
  const terminal = process.env['PETSTORE_TEST_TERMINAL']
  try {
    if (terminal) writeFileSync(terminal, `${relative('.', Bun.main)}\n`)
  } catch {
    // The terminal is gone.
  }
})
