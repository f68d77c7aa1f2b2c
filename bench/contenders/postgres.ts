import { join } from 'node:path'
import { writeCursor } from '../../src/page.ts'
import { type Contender, everyRule } from '../harness/contender.ts'
import { everyWork, ourRequests } from '../harness/work.ts'

const here = import.meta.dir

/** What contenders on PostgreSQL have in common: each has a database of its own, with the catalogue in it. */
const onPostgres = { works: everyWork, rules: everyRule, prepare() {} } as const

export function petstoreOn(databaseUrl: string): Contender {
  return {
    ...onPostgres,
    name: 'petstore-pg',
    title: 'petstore on PostgreSQL',
    about: 'This service, with a log line for each request, 10 connections for reading and 2 for writing',
    env: () => ({ DATABASE_URL: databaseUrl }),
    requests: ourRequests(after => writeCursor(BigInt(after), undefined)),
    command: ({ port }) => [join(here, '../../bin/petstore'), 'serve', '--port', String(port)],
  }
}

export function fastifyOn(databaseUrl: string): Contender {
  return {
    ...onPostgres,
    name: 'fastify-pg',
    title: 'Fastify 5 + pg',
    about: 'On Node: the same as on SQLite, with a pool of 10 connections',
    needs: { packages: ['fastify', 'pg'], programs: ['node'] },
    env: () => ({ DATABASE_URL: databaseUrl }),
    requests: ourRequests(String),
    command: ({ port }) => ['node', join(here, 'fastify-pg.js'), String(port)],
  }
}
