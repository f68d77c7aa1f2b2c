export { setDefaultTimeout as setTestLimit, test } from 'bun:test'
