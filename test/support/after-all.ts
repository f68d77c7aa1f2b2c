import { afterAll, setDefaultTimeout } from 'bun:test'
import { stopSharedCluster } from './postgres.ts'
import { testMsMax } from './process.ts'

// A busy machine must not fail a test: helpers that wait have shorter limits and clearer messages.
setDefaultTimeout(testMsMax)
afterAll(stopSharedCluster)
