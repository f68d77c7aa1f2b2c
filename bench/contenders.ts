import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { writeCursor } from '../src/page.ts'
import type { Bench } from './bench.ts'
import { type Animal, type Catalogue, importAnimals, petstoreProgram } from './catalogue.ts'

/** What the load sends, and its title in tables. */
export const titles = {
  mix: 'Mix',
  list: 'First page',
  pages: 'Random pages',
  get: 'Get random ones',
  same: 'Get the same one',
  create: 'Durable create',
} as const

export type Workload = keyof typeof titles

export const allWorkloads = Object.keys(titles) as readonly Workload[]

/** A server to measure: a short program in contenders/, or a product. */
export interface Contender {
  /** In tables and in recorded.json. */
  readonly name: string
  /** In bench/node_modules. */
  readonly packages?: readonly string[]
  readonly workloads: readonly Workload[]
  /** The responses that it must give before it is measured. */
  readonly responses: 'petstore' | 'fixed'
  readonly env?: Readonly<Record<string, string>>
  /** Processes that share the port; 1 by default. */
  readonly processes?: number
  /** The cursor of a page: each contender has its own form. */
  cursor(after: number, status: Animal['status'] | undefined): string
  /** Puts its data into place. */
  prepare(place: Place, given: Given, bench: Bench): void | Promise<void>
  command(place: Place): readonly string[]
}

export const petsPath = '/v1/pets'
export const petPath = (id: number) => `${petsPath}/${id}`

/** Where a contender runs; nothing else uses it. */
interface Place {
  readonly port: number
  /** Its database, or its fixed responses. */
  readonly file: string
}

export interface Given {
  readonly catalogue: Catalogue
  /** Responses of the petstore, for the fixed-bytes server. */
  readonly fixed?: Readonly<Record<'list' | 'get', FixedResponse>>
}

export interface FixedResponse {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Runs a program of contenders/, which takes a port and a file. */
function program(runtime: 'bun' | 'node', name: string): Pick<Contender, 'command'> {
  const start = runtime === 'bun' ? [process.execPath, '--no-env-file'] : ['node']
  const script = join(import.meta.dir, `contenders/${name}.js`)
  return { command: ({ port, file }) => [...start, script, String(port), file] }
}

/** The same work, durability, rules, key and paging as the petstore. None writes a log. */
const peer = {
  workloads: allWorkloads,
  responses: 'petstore',
  cursor: String,
  prepare: ({ file }: Place, { catalogue }: Given) => copyFileSync(catalogue.file, file),
} as const

/** Without a log. */
export function serveCommand({ port }: Pick<Place, 'port'>): readonly string[] {
  return [petstoreProgram, 'serve', '--port', String(port), '--log-level', 'warn']
}

export const petstore: Contender = {
  ...peer,
  name: 'petstore',
  cursor: (after, status) => writeCursor(BigInt(after), status),
  command: place => [...serveCommand(place), '--database-url', `sqlite:${place.file}`],
}

/** With its log, as it runs by default. */
export const loggingPetstore: Contender = {
  ...petstore,
  name: 'petstore with its log',
  workloads: ['mix', 'list', 'get', 'same'],
  command: place => [...petstore.command(place), '--log-level', 'info'],
}

/** It sends the petstore's responses from memory and does none of its work. */
export const fixedBun: Contender = {
  ...peer,
  ...program('bun', 'fixed-bun'),
  name: 'Bun.serve, fixed bytes',
  workloads: ['list', 'get', 'same'],
  responses: 'fixed',
  prepare: ({ file }, { fixed }) => writeFileSync(file, JSON.stringify(fixed)),
}

export const plainBun: Contender = {
  ...peer,
  ...program('bun', 'plain-bun'),
  name: 'Plain Bun.serve + bun:sqlite',
}

const hono: Contender = {
  ...peer,
  ...program('bun', 'hono'),
  name: 'Hono + bun:sqlite',
  packages: ['hono'],
}

export const fastify: Contender = {
  ...peer,
  ...program('node', 'fastify'),
  name: 'Fastify 5 + better-sqlite3',
  packages: ['fastify', 'better-sqlite3'],
}

/** With Fastify's own logger. */
export const loggingFastify: Contender = {
  ...fastify,
  name: 'Fastify 5 with its log',
  workloads: ['mix', 'list', 'get'],
  env: { LOG: 'on' },
}

/** In the order of the tables. */
export const contenders: readonly Contender[] = [
  ...[petstore, plainBun, hono, fastify, fixedBun],
  ...[loggingPetstore, loggingFastify],
]

const postgresWorkloads: readonly Workload[] = ['list', 'pages', 'get', 'create']

/** Contenders on one PostgreSQL server, each with a new database for each start. */
export function postgresContenders(serverUrl: string): readonly Contender[] {
  const onDatabase = (database: string, fill: (url: string, animals: number, bench: Bench) => Promise<void>) => {
    const url = new URL(database, serverUrl).href
    return {
      env: { DATABASE_URL: url },
      async prepare(_place: Place, { catalogue }: Given, bench: Bench) {
        await using server = new SQL(serverUrl, { max: 1 })
        await server.unsafe(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`)
        await server.unsafe(`CREATE DATABASE ${database} ENCODING 'UTF8' TEMPLATE template0`)
        await fill(url, catalogue.animals, bench)
      },
    }
  }
  return [
    {
      ...petstore,
      ...onDatabase('petstore', (url, animals, bench) => importAnimals(bench, url, animals)),
      workloads: postgresWorkloads,
      command: serveCommand,
    },
    {
      ...peer,
      ...onDatabase('bun_sql', fillDatabase),
      ...program('bun', 'bun-sql'),
      name: 'Bun.sql',
      workloads: postgresWorkloads,
    },
  ]
}

async function fillDatabase(url: string, animals: number): Promise<void> {
  await using sql = new SQL(url, { max: 1 })
  await sql.unsafe(`
    CREATE TABLE pets (id bigint PRIMARY KEY, name text NOT NULL, category_id bigint NOT NULL, status text);
    CREATE INDEX pets_by_status ON pets (status, id);
    INSERT INTO pets
      SELECT n, 'Animal ' || n, n % 50, (ARRAY['available', 'pending', 'sold'])[n % 3 + 1]
      FROM generate_series(1, ${animals}) AS n;
    ANALYZE pets;
    CREATE TABLE pet_ids (last_id bigint NOT NULL);
    INSERT INTO pet_ids VALUES (${animals})`)
}
