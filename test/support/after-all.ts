import { afterAll } from 'bun:test'
import { removeCopiedPrograms } from './postgres-program.ts'
import { stopSharedCluster } from './with-postgres.ts'

afterAll(async () => {
  await stopSharedCluster()
  removeCopiedPrograms()
})
