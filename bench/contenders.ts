import { Database } from 'bun:sqlite'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import type { Bench } from './bench.ts'
import { type Catalogue, importAnimals, petstoreProgram } from './catalogue.ts'
import { config } from './package.json'

/** What the load sends, and its title in tables. */
export const titles = {
  list: 'List of 20',
  filtered: 'List of 100 by status',
  get: 'Get one',
  create: 'Durable create',
  mix: 'Mix 90/8/2',
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
  readonly responses: 'petstore' | 'fixed' | 'pocketbase'
  readonly env?: Readonly<Record<string, string>>
  /** Processes that share the port; 1 by default. */
  readonly processes?: number
  readonly paths: Paths
  /** The header of its requests, if it cannot accept the benchmark's key. */
  authorization?(place: Place): string
  /** Puts its data into place. */
  prepare(place: Place, given: Given, bench: Bench): void | Promise<void>
  command(place: Place): readonly string[]
}

/** Where a contender serves each kind of request. */
interface Paths {
  readonly pets: string
  /** An animal, with its id as `%d` or `%015d`. */
  readonly pet: string
  readonly list: string
  readonly filtered: string
}

export function petPath({ pet }: Paths, id: number): string {
  return pet.replace(/%0?(\d*)d/, (_, width) => String(id).padStart(Number(width), '0'))
}

/** Where a contender runs; nothing else uses it. */
interface Place {
  readonly port: number
  readonly folder: string
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

const modules = join(import.meta.dir, 'node_modules')

/** Runs a program of contenders/, which takes a port and a file. */
function program(runtime: 'bun' | 'node', name: string): Pick<Contender, 'command'> {
  const start = runtime === 'bun' ? [process.execPath, '--no-env-file'] : ['node']
  const script = join(import.meta.dir, `contenders/${name}.js`)
  return { command: ({ port, file }) => [...start, script, String(port), file] }
}

/** The same work, durability, rules, key and paging as the petstore. */
const peer = {
  workloads: allWorkloads,
  responses: 'petstore',
  paths: {
    pets: '/v1/pets',
    pet: '/v1/pets/%d',
    list: '/v1/pets',
    filtered: '/v1/pets?status=available&limit=100',
  },
  prepare: ({ file }: Place, { catalogue }: Given) => copyFileSync(catalogue.file, file),
} as const

export const petstore: Contender = {
  ...peer,
  name: 'petstore',
  command: ({ file, port }) => [
    petstoreProgram,
    ...['serve', '--port', String(port), '--database-url', `sqlite:${file}`],
  ],
}

/** It sends the petstore's responses from memory and does none of its work. */
export const fixedBun: Contender = {
  ...peer,
  ...program('bun', 'fixed-bun'),
  name: 'Bun.serve, fixed bytes',
  workloads: ['list', 'get'],
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

const pocketbaseProgram = `pocketbase/${config.pocketbase}/base`
const records = '/api/collections/pets/records'

/** Its own interface, in its fastest form: it does not count the animals, and its log is off. */
const pocketbase: Contender = {
  name: 'PocketBase',
  packages: [pocketbaseProgram],
  workloads: peer.workloads,
  responses: 'pocketbase',
  paths: {
    pets: records,
    pet: `${records}/%015d`,
    list: `${records}?perPage=20&skipTotal=1&sort=@rowid`,
    filtered: `${records}?perPage=100&skipTotal=1&sort=@rowid&filter=status='available'`,
  },
  async prepare({ folder, file }, { catalogue }, bench) {
    mkdirSync(join(folder, 'migrations'))
    copyFileSync(join(import.meta.dir, 'contenders/pocketbase.js'), join(folder, 'migrations/1_pets.js'))
    const migration = bench.spawn(pocketbaseCommand(folder, file, 'migrate', 'up'), { stdout: 'ignore' })
    if ((await migration.exited) !== 0) throw new Error('PocketBase did not run its migration')
    using database = new Database(join(file, 'data.db'))
    database.run('ATTACH ? AS catalogue', [catalogue.file])
    database.run(`
      INSERT INTO main.pets (id, name, categoryId, status)
        SELECT printf('%015d', id), name, category_id, status FROM catalogue.pets ORDER BY id`)
  },
  authorization: ({ file }) => readFileSync(join(file, 'token'), 'utf8'),
  command: ({ port, folder, file }) => pocketbaseCommand(folder, file, 'serve', '--http', `127.0.0.1:${port}`),
}

function pocketbaseCommand(folder: string, file: string, ...args: readonly string[]): readonly string[] {
  const folders = ['--dir', file, '--migrationsDir', join(folder, 'migrations')]
  return [join(modules, pocketbaseProgram), ...args, ...folders]
}

/** In the order of the tables. */
export const contenders: readonly Contender[] = [petstore, plainBun, hono, fastify, pocketbase, fixedBun]

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
      ...peer,
      ...onDatabase('petstore', (url, animals, bench) => importAnimals(bench, url, animals)),
      name: 'petstore',
      workloads: ['list', 'get', 'create'],
      command: ({ port }) => [petstoreProgram, 'serve', '--port', String(port)],
    },
    {
      ...peer,
      ...onDatabase('bun_sql', fillDatabase),
      ...program('bun', 'bun-sql'),
      name: 'Bun.sql',
      workloads: ['list', 'get', 'create'],
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
