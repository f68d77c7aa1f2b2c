export { key, serveFrom } from './load.ts'
