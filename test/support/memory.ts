export { residentBytes } from './process.ts'
