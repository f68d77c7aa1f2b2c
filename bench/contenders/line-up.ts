import { join } from 'node:path'
import { writeCursor } from '../../src/page.ts'
import { type Contender, copyCatalogue, everyRule, type Place } from '../harness/contender.ts'
import { everyWork, ourRequests } from '../harness/work.ts'
import { fixedBun, fixedNginx, fixedNode } from './ceilings.ts'
import { jsonServer, prism } from './products.ts'

const root = join(import.meta.dir, '../..')

const bunProgram = (file: string) => [process.execPath, '--no-env-file', join(import.meta.dir, file)]
const nodeProgram = (file: string) => ['node', join(import.meta.dir, file)]

const serve = ({ file, port }: Place, ...flags: string[]) => [
  join(root, 'bin/petstore'),
  ...['serve', '--port', String(port), '--database-url', `sqlite:${file}`],
  ...flags,
]

/** What all of ours have in common. */
const ourOwn = {
  works: everyWork,
  rules: everyRule,
  prepare: copyCatalogue,
  requests: ourRequests(after => writeCursor(BigInt(after), undefined)),
} as const

export const petstore: Contender = {
  ...ourOwn,
  name: 'petstore',
  title: 'petstore',
  about: 'This service, as `npm start` runs it: with a log line for each request',
  command: place => serve(place),
}

export const silentPetstore: Contender = {
  ...ourOwn,
  name: 'petstore-silent',
  title: 'petstore without a log',
  about: 'The same, without a line for each request',
  command: place => serve(place, '--log-level', 'error'),
}

export const commitEachPetstore: Contender = {
  ...ourOwn,
  name: 'petstore-commit-each',
  title: 'petstore, each POST committed on the serving thread',
  about: 'The same, but each POST commits by itself on the thread that serves',
  command: ({ file, port }) => [...bunProgram('commit-each.ts'), String(port), file],
}

/** Peers: the same work, durability, rules, key and paging. */
const peer = {
  works: everyWork,
  rules: everyRule,
  prepare: copyCatalogue,
  requests: ourRequests(String),
} as const

export const fastify: Contender = {
  ...peer,
  name: 'fastify',
  title: 'Fastify 5 + better-sqlite3',
  about: 'On Node; schemas check what comes in and write what goes out',
  needs: { packages: ['fastify', 'better-sqlite3'], programs: ['node'] },
  command: ({ port, file }) => [...nodeProgram('fastify.js'), String(port), file],
}

const express: Contender = {
  ...peer,
  name: 'express',
  title: 'Express 5 + better-sqlite3',
  about: 'On Node; `etag` and `x-powered-by` are switched off',
  needs: { packages: ['express', 'better-sqlite3'], programs: ['node'] },
  command: ({ port, file }) => [...nodeProgram('express.js'), String(port), file],
}

const hono: Contender = {
  ...peer,
  name: 'hono',
  title: 'Hono + bun:sqlite',
  about: 'On Bun, with its own validator',
  needs: { packages: ['hono'] },
  command: ({ port, file }) => [...bunProgram('hono.js'), String(port), file],
}

export const plainBun: Contender = {
  ...peer,
  name: 'plain-bun',
  title: 'plain Bun.serve + bun:sqlite',
  about: 'The shortest Bun server that does this work: what our care costs',
  command: ({ port, file }) => [...bunProgram('plain-bun.js'), String(port), file],
}

/** In the order of the tables. */
export const lineUp: readonly Contender[] = [
  petstore,
  fixedBun,
  fixedNode,
  fixedNginx,
  plainBun,
  hono,
  fastify,
  express,
  jsonServer,
  prism,
]
