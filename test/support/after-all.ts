import { afterAll, setDefaultTimeout } from 'bun:test'
import { stopSharedCluster } from './postgres.ts'
import { testMsMax } from './process.ts'

// A busy machine must not fail a test. Files whose tests are slow set it too: without --parallel, Bun runs this only once.
setDefaultTimeout(testMsMax)
afterAll(stopSharedCluster)
