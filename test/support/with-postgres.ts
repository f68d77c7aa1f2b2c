export { describeWithOwnPostgres, describeWithPostgres, sharedDatabase } from './postgres.ts'
