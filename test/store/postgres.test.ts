import { describeWithPostgres } from '../support/postgres.ts'
import { describeStoreContract } from './contract.ts'

describeWithPostgres('PostgreSQL', () => describeStoreContract('PostgreSQL', 'postgres'))
