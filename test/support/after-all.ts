import { afterAll, setDefaultTimeout } from 'bun:test'
import { stopSharedCluster } from './postgres.ts'

// A busy machine must not fail a test. Without --parallel, Bun runs this for the first file only.
setDefaultTimeout(60_000)
afterAll(stopSharedCluster)
