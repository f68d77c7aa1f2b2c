import { afterAll } from 'bun:test'
import { stopSharedCluster } from './postgres.ts'

afterAll(stopSharedCluster)
