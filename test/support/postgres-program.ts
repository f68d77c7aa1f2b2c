export { postgresPrograms, removeCopiedPrograms } from './postgres.ts'
