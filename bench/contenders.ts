import { Database } from 'bun:sqlite'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { writeCursor } from '../src/page.ts'
import { animalsAfter, type Catalogue, importAnimals, petstoreProgram } from './catalogue.ts'
import { config } from './package.json'
import type { Session } from './session.ts'
import { type Paths, type WorkloadName, workloads } from './workloads.ts'

/** A server to measure: a short program in contenders/, or a product. */
export interface Contender {
  /** For `--only` and recorded.json. */
  readonly name: string
  readonly title: string
  /** Packages in bench/node_modules and programs on the PATH. */
  readonly packages?: readonly string[]
  readonly programs?: readonly string[]
  /** The workloads that it supports. */
  readonly workloads: readonly WorkloadName[]
  /** Passed before any measurement. */
  readonly checks: readonly CheckName[]
  /** Less than the whole catalogue. */
  readonly animalsMax?: number
  readonly env?: Readonly<Record<string, string>>
  /** Processes that share the port; 1 by default. */
  readonly instances?: number
  readonly paths: Paths
  /** The header of its requests, if it cannot accept the benchmark's key. */
  authorization?(place: Place): string
  /** Puts its data into place. */
  prepare(place: Place, given: Given, session: Session): void | Promise<void>
  command(place: Place): readonly string[]
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
  /** Only the fixed-bytes servers and Prism need them. */
  readonly responses?: PetstoreResponses
}

/** Responses of the petstore, captured before the measurement. */
export interface PetstoreResponses {
  readonly list: FixedResponse
  readonly get: FixedResponse
  readonly openapi: string
}

export interface FixedResponse {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const interfaceChecks = ['bytes', 'pages', 'filter', 'get', 'create', 'key', 'validation'] as const
/** `once`: one animal for each idempotency key. `same`: the petstore's own bytes and headers. `mock`: any animals, and any
 *  4xx for invalid requests. `records`: PocketBase's own interface. */
export type CheckName = (typeof interfaceChecks)[number] | 'once' | 'same' | 'mock' | 'records'

const modules = join(import.meta.dir, 'node_modules')

/** Programs in contenders/ take a port and a file. */
function ownProgram(runtime: 'bun' | 'node', name: string): Pick<Contender, 'name' | 'programs' | 'command'> {
  const start = runtime === 'bun' ? [process.execPath, '--no-env-file'] : ['node']
  const script = join(import.meta.dir, `contenders/${name}.js`)
  return {
    name,
    programs: runtime === 'node' ? ['node'] : [],
    command: ({ port, file }) => [...start, script, String(port), file],
  }
}

/** Only the contenders on PostgreSQL know idempotency keys. */
const everyWorkload = workloads.map(({ name }) => name).filter(name => name !== 'keyed')

const pathsWith = (cursorAfter: (id: number) => string): Paths => ({
  pets: '/v1/pets',
  list: '/v1/pets',
  filtered: '/v1/pets?status=available&limit=100',
  deep: after => `/v1/pets?limit=20&cursor=${cursorAfter(after)}`,
})

/** The same work, durability, rules, key and paging as the petstore. */
const peer = {
  workloads: everyWorkload,
  checks: interfaceChecks,
  paths: pathsWith(String),
  prepare: ({ file }: Place, { catalogue }: Given) => copyFileSync(catalogue.file, file),
} as const

export const petstore: Contender = {
  ...peer,
  name: 'petstore',
  title: 'petstore',
  paths: pathsWith(after => writeCursor(BigInt(after), undefined)),
  command: ({ file, port }) => [
    petstoreProgram,
    ...['serve', '--port', String(port), '--database-url', `sqlite:${file}`],
  ],
}

/** The fixed-bytes servers send the petstore's response from memory and do none of its work. */
const fixedBytes = {
  workloads: ['list', 'list-1', 'list-512', 'get'],
  checks: ['same'],
  paths: pathsWith(String),
  prepare: ({ file }: Place, { responses }: Given) => writeFileSync(file, JSON.stringify(responses)),
} as const

export const fixedBun: Contender = {
  ...fixedBytes,
  ...ownProgram('bun', 'fixed-bun'),
  title: 'Bun.serve, fixed bytes',
}

const fixedNode: Contender = {
  ...fixedBytes,
  ...ownProgram('node', 'fixed-node'),
  title: 'node:http, fixed bytes',
}

const fixedNginx: Contender = {
  ...fixedBytes,
  name: 'fixed-nginx',
  title: 'nginx, fixed bytes',
  programs: ['nginx'],
  prepare: (place, { responses }) => {
    if (responses) writeFileSync(place.file, nginxConfiguration(place, responses))
  },
  command: ({ folder, file }) => ['nginx', '-p', folder, '-c', file, '-e', 'stderr'],
}

function nginxConfiguration({ port, folder }: Place, { list, get }: PetstoreResponses): string {
  const quoted = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`
  const respond = ({ headers: { 'content-type': type = '', ...others }, body }: FixedResponse) => {
    const added = Object.entries(others).map(([name, value]) => `add_header ${name} ${quoted(value)};`)
    return `default_type ${quoted(type)}; ${added.join(' ')} return 200 ${quoted(body)};`
  }
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
    daemon off;
    worker_processes 1;
    pid ${folder}/pid;
    events { worker_connections 1024; }
    http {
      access_log off;
      keepalive_requests 1000000000;
      ${temporary.map(name => `${name}_temp_path ${folder}/${name};`).join('\n')}
      server {
        listen 127.0.0.1:${port};
        location = /v1/pets { ${respond(list)} }
        location /v1/pets/ { ${respond(get)} }
      }
    }`
}

const plainBun: Contender = {
  ...peer,
  ...ownProgram('bun', 'plain-bun'),
  title: 'Plain Bun.serve + bun:sqlite',
}

const hono: Contender = {
  ...peer,
  ...ownProgram('bun', 'hono'),
  title: 'Hono + bun:sqlite',
  packages: ['hono'],
}

export const fastify: Contender = {
  ...peer,
  ...ownProgram('node', 'fastify'),
  title: 'Fastify 5 + better-sqlite3',
  packages: ['fastify', 'better-sqlite3'],
}

const express: Contender = {
  ...peer,
  ...ownProgram('node', 'express'),
  title: 'Express 5 + better-sqlite3',
  packages: ['express', 'better-sqlite3'],
}

/** It rewrites its whole file for each creation, so a million animals would be no comparison. */
const jsonServerAnimals = 1_000

const jsonServer: Contender = {
  name: 'json-server',
  title: 'json-server',
  packages: ['json-server'],
  programs: ['node'],
  workloads: everyWorkload.filter(name => name !== 'deep'),
  checks: ['pages', 'filter', 'get', 'create'],
  animalsMax: jsonServerAnimals,
  paths: {
    pets: '/v1/pets',
    list: '/v1/pets?_page=1&_limit=20',
    filtered: '/v1/pets?status=available&_limit=100',
  },
  prepare({ file }) {
    writeFileSync(`${file}.json`, JSON.stringify({ pets: animalsAfter(0, jsonServerAnimals) }))
    writeFileSync(`${file}-routes.json`, JSON.stringify({ '/v1/*': '/$1' }))
  },
  command: ({ port, file }) => [
    'node',
    join(modules, 'json-server/lib/cli/bin.js'),
    ...['--host', '127.0.0.1', '--port', String(port), '--quiet', '--routes', `${file}-routes.json`],
    `${file}.json`,
  ],
}

const prism: Contender = {
  name: 'prism',
  title: 'Prism mock',
  packages: ['@stoplight/prism-cli'],
  programs: ['node'],
  workloads: ['list', 'list-1', 'list-512', 'get'],
  checks: ['mock'],
  paths: { pets: '/pets', list: '/pets' },
  prepare: ({ file }, { responses }) => writeFileSync(`${file}.json`, responses?.openapi ?? ''),
  command: ({ port, file }) => [
    'node',
    join(modules, '@stoplight/prism-cli/dist/index.js'),
    ...['mock', '--host', '127.0.0.1', '--port', String(port), '--verboseLevel', 'error'],
    `${file}.json`,
  ],
}

const pocketbaseProgram = `pocketbase/${config.pocketbase}/base`
const records = '/api/collections/pets/records'

/** Its own interface, in its fastest form: it does not count the animals, and its log is off. */
const pocketbase: Contender = {
  name: 'pocketbase',
  title: 'PocketBase',
  packages: [pocketbaseProgram],
  workloads: everyWorkload.filter(name => name !== 'deep'),
  checks: ['records'],
  paths: {
    pets: records,
    pet: `${records}/%015d`,
    list: `${records}?perPage=20&skipTotal=1&sort=@rowid`,
    filtered: `${records}?perPage=100&skipTotal=1&sort=@rowid&filter=status='available'`,
  },
  async prepare({ folder, file }, { catalogue }, session) {
    mkdirSync(join(folder, 'migrations'))
    copyFileSync(join(import.meta.dir, 'contenders/pocketbase.js'), join(folder, 'migrations/1_pets.js'))
    const migration = session.spawn(pocketbaseCommand(folder, file, 'migrate', 'up'), { stdout: 'ignore' })
    if ((await migration.exited) !== 0) throw new Error('did not run its migration')
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
export const contenders: readonly Contender[] = [
  petstore,
  plainBun,
  hono,
  fastify,
  express,
  pocketbase,
  jsonServer,
  prism,
  fixedBun,
  fixedNode,
  fixedNginx,
]

interface PostgresPlace {
  /** Where databases are created and filled. */
  readonly serverUrl: string
  /** The same server, as the contenders reach it. */
  readonly contendersUrl?: string
  readonly instances?: number
}

/** On one PostgreSQL server, each with a new database for each start. */
export function postgresContenders({ serverUrl, contendersUrl = serverUrl, instances = 1 }: PostgresPlace) {
  const createDatabase = async (name: string) => {
    await using server = new SQL(serverUrl, { max: 1 })
    await server.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    await server.unsafe(`CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE template0`)
    return new URL(name, serverUrl).href
  }
  const onPostgres = (name: string, fill: (url: string, animals: number, session: Session) => Promise<void>) => ({
    name,
    instances,
    env: { DATABASE_URL: new URL(name, contendersUrl).href },
    prepare: async (_place: Place, { catalogue }: Given, session: Session) =>
      fill(await createDatabase(name), catalogue.animals, session),
  })
  const withKeys = { workloads: [...everyWorkload, 'keyed'], checks: [...interfaceChecks, 'once'] } as const
  return {
    petstore: {
      ...petstore,
      ...withKeys,
      title: 'petstore on PostgreSQL',
      ...onPostgres('petstore', (url, animals, session) => importAnimals(session, url, animals)),
      command: ({ port }) => [petstoreProgram, 'serve', '--reuse-port', '--port', String(port)],
    },
    bunSql: {
      ...peer,
      ...withKeys,
      ...ownProgram('bun', 'bun-sql'),
      title: 'Plain Bun.serve + Bun.sql',
      ...onPostgres('bun_sql', fillDatabase),
    },
    fastify: {
      ...peer,
      ...ownProgram('node', 'fastify-pg'),
      title: 'Fastify 5 + pg',
      packages: ['fastify', 'pg'],
      ...onPostgres('fastify', fillDatabase),
    },
  } satisfies Record<string, Contender>
}

/** Fastify uses only the table of the animals. */
async function fillDatabase(url: string, animals: number): Promise<void> {
  await using sql = new SQL(url, { max: 1 })
  await sql.unsafe(`
    CREATE TABLE pets (
      id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
      name text NOT NULL,
      category_id bigint NOT NULL,
      status text
    );
    CREATE INDEX pets_by_status ON pets (status, id);
    INSERT INTO pets (name, category_id, status)
      SELECT 'Animal ' || n, n % 50, (ARRAY['available', 'pending', 'sold'])[n % 3 + 1]
      FROM generate_series(1, ${animals}) AS n;
    ANALYZE pets;
    CREATE TABLE pet_ids (last_id bigint NOT NULL);
    INSERT INTO pet_ids VALUES (${animals});
    CREATE TABLE creation_keys (key text PRIMARY KEY, pet_id bigint NOT NULL)`)
}
