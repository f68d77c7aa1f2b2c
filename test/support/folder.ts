export { temporaryFolder } from './process.ts'
