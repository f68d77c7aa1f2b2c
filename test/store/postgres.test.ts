import { setDefaultTimeout } from 'bun:test'
import { describeWithPostgres } from '../support/postgres.ts'
import { testMsMax } from '../support/process.ts'
import { describeStoreContract } from './contract.ts'

setDefaultTimeout(testMsMax)
describeWithPostgres('PostgreSQL', () => describeStoreContract('PostgreSQL', 'postgres'))
