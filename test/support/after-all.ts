import { afterAll, setDefaultTimeout } from 'bun:test'
import { relative } from 'node:path'
import { stopSharedCluster } from './postgres.ts'
import { downloadMs } from './process.ts'

const startedMs = Date.now()

// For what hangs outside of `until`. Without --parallel, Bun runs this file for the first test file only.
setDefaultTimeout(downloadMs)
afterAll(stopSharedCluster)
// A line for each finished file of `npm test`.
if (process.env['BUN_TEST_WORKER_ID']) {
  afterAll(() => {
    const seconds = ((Date.now() - startedMs) / 1_000).toFixed(1)
    process.stderr.write(`${relative('.', Bun.main)} took ${seconds} s\n`)
  })
}
