export { createKey, listKeys, revokeKey } from './process.ts'
