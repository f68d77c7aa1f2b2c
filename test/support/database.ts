export { newTestDatabase, type StoreKind, storeUnderTest } from './service.ts'
