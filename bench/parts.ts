import { join } from 'node:path'
import { writeCursor } from '../src/page.ts'
import { allLoads, type CursorWriter, type Load } from './loads.ts'

/** A server to measure, with the catalogue that it serves. */
export interface Contender {
  /** In tables. */
  readonly name: string
  /** It finds PORT, DATABASE_URL and PETSTORE_API_KEY in its environment. */
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly engine: 'SQLite' | 'PostgreSQL'
  readonly animals: number
  readonly cursor: CursorWriter
  /** They share one port. By default one process has a core of its own, and so has the load. */
  readonly processes?: number
  /** 64 by default. */
  readonly connections?: number
  /** It rounds integers beyond 2^53. */
  readonly isInexact?: true
}

/** Two servers: what the first one has is divided by what the other one has. */
export interface Pair {
  /** In tables. */
  readonly name: string
  readonly server: Contender
  readonly against: Contender
  readonly loads: readonly Load[]
}

const petstoreIn = (checkout: string) => [join(checkout, 'bin/petstore'), 'serve']
const contender = (file: string) => join(import.meta.dir, 'contenders', file)
const bun = (file: string) => [process.execPath, '--no-env-file', contender(file)]

/** As it is installed: with its log. */
export const petstore: Contender = {
  name: 'petstore',
  command: petstoreIn(join(import.meta.dir, '..')),
  engine: 'SQLite',
  animals: 1_000_000,
  cursor: (after, status) => writeCursor(BigInt(after), status),
}
const quietPetstore: Contender = { ...petstore, name: 'petstore without log', env: { PETSTORE_LOG_LEVEL: 'warn' } }
const plainBun: Contender = { ...petstore, name: 'Plain Bun', command: bun('plain-bun.js'), cursor: String }
const roundingBun: Contender = { ...plainBun, name: 'Plain Bun, rounding', env: { ROUND: 'on' }, isInexact: true }
const elysia: Contender = { ...plainBun, name: 'Elysia', command: bun('elysia.js') }
const fastify: Contender = { ...plainBun, name: 'Fastify', command: ['node', contender('fastify.js')] }
const loggingFastify: Contender = { ...fastify, name: 'Fastify with log', env: { LOG: 'on' } }

function pair(server: Contender, against: Contender, loads: readonly Load[] = allLoads): Pair {
  return { name: `${server.name} / ${against.name}`, server, against, loads }
}

const one: Contender = { ...petstore, name: 'one process', processes: 1 }
const two: Contender = { ...petstore, name: 'two processes', processes: 2 }

const onPostgres = { engine: 'PostgreSQL', animals: 100_000, processes: 1 } as const
const instance: Contender = { ...petstore, ...onPostgres, name: 'one instance', connections: 512 }
const instances = (processes: number) => ({ ...instance, name: `${processes} instances`, processes })

function growthOn(engine: typeof onPostgres | undefined): readonly Pair[] {
  const small: Contender = { ...petstore, ...engine, animals: 10_000, name: '10,000 animals' }
  const large: Contender = { ...small, animals: 10_000_000, name: '10 million animals' }
  return [pair(large, small, ['pages', 'create'])]
}

/** Servers that run at the same time, by the name that the command line uses. */
export const parts: Readonly<Record<string, readonly Pair[]>> = {
  peers: [
    pair(petstore, plainBun),
    pair(petstore, elysia),
    pair(petstore, fastify),
    pair(petstore, loggingFastify, ['mix', 'get']),
    pair(quietPetstore, fastify, ['mix', 'get']),
    pair(roundingBun, plainBun, ['mix', 'pages', 'get']),
  ],
  processes: [pair(two, one, ['get', 'create'])],
  postgres: [pair({ ...petstore, ...onPostgres }, { ...plainBun, ...onPostgres }, ['list', 'pages', 'get', 'create'])],
  instances: [pair(instances(2), instance, ['create']), pair(instances(4), instance, ['create'])],
  'growth-sqlite': growthOn(undefined),
  'growth-postgres': growthOn(onPostgres),
}

/** The petstore of this checkout and of another one. */
export function against(checkout: string): readonly Pair[] {
  return [pair(petstore, { ...petstore, name: checkout, command: petstoreIn(checkout) })]
}
