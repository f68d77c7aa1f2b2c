import { afterAll } from 'bun:test'
import { stopSharedCluster } from './postgres.ts'
import { setTestLimit } from './test.ts'

// A busy machine must not fail a test. Without --parallel, Bun runs this for the first file only.
setTestLimit(60_000)
afterAll(stopSharedCluster)
