import { join, resolve } from 'node:path'
import { writeCursor } from '../src/page.ts'
import type { Load, Served } from './loads.ts'

/** A server to measure, with the catalogue that it serves. */
export interface Contender extends Served {
  /** In tables. */
  readonly name: string
  /** It finds PORT, DATABASE_URL and PETSTORE_API_KEY in its environment. */
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly engine: 'SQLite' | 'PostgreSQL'
  readonly loads: readonly Load[]
  /** It sends the petstore's responses from memory and does none of its work. */
  readonly isFixed?: boolean
  /** Processes that share one port, which works on Linux. By default, one process has its own port. */
  readonly processes?: number
}

/** Contenders that are measured in turn and compared with the first one. */
export interface Part {
  readonly title: string
  readonly contenders: readonly Contender[]
  /** 64 by default. */
  readonly connections?: number
}

const petstoreIn = (checkout: string) => [join(checkout, 'bin/petstore'), 'serve']
const bun = (program: string) => [process.execPath, '--no-env-file', join(import.meta.dir, 'contenders', program)]
const node = (program: string) => ['node', join(import.meta.dir, 'contenders', program)]

const petstore: Contender = {
  name: 'petstore',
  command: petstoreIn(join(import.meta.dir, '..')),
  env: { PETSTORE_LOG_LEVEL: 'warn' },
  engine: 'SQLite',
  animals: 1_000_000,
  loads: ['mix', 'list', 'pages', 'get', 'create'],
  cursor: (after, status) => writeCursor(BigInt(after), status),
}

/** Another program with the same work, durability, rules, key and paging. It writes no log. */
const peer = { ...petstore, cursor: String }

const fastify: Contender = { ...peer, name: 'Fastify + better-sqlite3', command: node('fastify.js') }

const peers: Part = {
  title: 'the petstore and other servers on SQLite',
  contenders: [
    petstore,
    { ...peer, name: 'Plain Bun.serve + bun:sqlite', command: bun('plain-bun.js') },
    { ...peer, name: 'Elysia + bun:sqlite', command: bun('elysia.js') },
    { ...peer, name: 'Hono + bun:sqlite', command: bun('hono.js') },
    fastify,
    { ...peer, name: 'Bun.serve, fixed bytes', command: bun('fixed-bun.js'), loads: ['list', 'get'], isFixed: true },
    { ...petstore, name: 'petstore with its log', env: {}, loads: ['mix', 'list', 'get'] },
    { ...fastify, name: 'Fastify with its log', env: { LOG: 'on' }, loads: ['mix'] },
  ],
}

const processes: Part = {
  title: 'one and two processes on one port and one SQLite file',
  contenders: [
    { ...petstore, name: 'two processes', processes: 2, loads: ['get', 'create'] },
    { ...petstore, name: 'one process', processes: 1, loads: ['get', 'create'] },
  ],
}

const onPostgres = { engine: 'PostgreSQL', animals: 100_000, loads: ['list', 'pages', 'get', 'create'] } as const

const postgres: Part = {
  title: 'the petstore and Bun.sql on PostgreSQL',
  contenders: [
    { ...petstore, ...onPostgres },
    { ...peer, ...onPostgres, name: 'Bun.serve + Bun.sql', command: bun('bun-sql.js') },
  ],
}

const instance: Contender = { ...petstore, ...onPostgres, loads: ['create'] }

const instances: Part = {
  title: 'creations by one, two and four instances on PostgreSQL',
  connections: 512,
  contenders: [
    { ...instance, name: 'one instance', processes: 1 },
    { ...instance, name: 'two instances', processes: 2 },
    { ...instance, name: 'four instances', processes: 4 },
  ],
}

/** The petstore with catalogues of different sizes. */
function growthOn(engine: Contender['engine']): Part {
  return {
    title: `the petstore with up to 10 million animals on ${engine}`,
    contenders: [10_000, 10_000_000].map(animals => {
      const name = `${animals.toLocaleString('en')} animals`
      return { ...petstore, name, engine, animals, loads: ['pages', 'create'] }
    }),
  }
}

/** By the name that the command line and the pages use. */
export const parts: Readonly<Record<string, Part>> = {
  peers,
  processes,
  postgres,
  instances,
  'growth-sqlite': growthOn('SQLite'),
  'growth-postgres': growthOn('PostgreSQL'),
}

/** Adds the petstore of another checkout wherever this one's runs. */
export function withCheckout(contenders: readonly Contender[], checkout: string): readonly Contender[] {
  return contenders.flatMap(each => {
    if (each.command !== petstore.command) return [each]
    return [each, { ...each, name: `${each.name} of ${checkout}`, command: petstoreIn(resolve(checkout)) }]
  })
}
