import { afterAll, setDefaultTimeout } from 'bun:test'
import { stopSharedCluster } from './postgres.ts'
import { downloadMs } from './process.ts'

const startedMs = Date.now()

// For what hangs outside of `until`. Without --parallel, Bun runs this file for the first test file only.
setDefaultTimeout(downloadMs)
afterAll(stopSharedCluster)
// `npm test` puts it behind the name of the file.
if (process.env['BUN_TEST_WORKER_ID']) {
  afterAll(() => void process.stderr.write(`finished after ${((Date.now() - startedMs) / 1_000).toFixed(1)} s\n`))
}
