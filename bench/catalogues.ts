import { copyFileSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { ask, type Cluster, startCluster } from '../test/support/postgres.ts'
import { program, temporaryFolder } from '../test/support/process.ts'
import type { Contender } from './contenders.ts'
import { animalsAfter } from './loads.ts'
import { log } from './report.ts'

/** Imports each catalogue once, and copies it for every server that needs it. All files are gone with it. */
export class Catalogues implements AsyncDisposable {
  readonly #folder = temporaryFolder()
  #cluster: Cluster | undefined
  /** The address of each imported store. No server uses it. */
  readonly #imported = new Map<string, string>()
  #databases = 0

  newFolder(): string {
    return mkdtempSync(join(this.#folder.path, 'folder-'))
  }

  /** The address of a store for one server: a SQLite file in this folder, or a database. */
  async copy({ engine, animals }: Contender, folder: string): Promise<string> {
    const key = `${engine} ${animals}`
    const imported = this.#imported.get(key) ?? (await this.#import(engine, animals))
    this.#imported.set(key, imported)
    if (engine === 'PostgreSQL') return this.#newDatabase(databaseOf(imported))
    const file = join(folder, 'pets.db')
    copyFileSync(imported.replace('sqlite:', ''), file)
    return `sqlite:${file}`
  }

  async drop(url: string): Promise<void> {
    if (url.startsWith('sqlite:')) return
    await ask(this.#cluster?.url() ?? '', `DROP DATABASE ${databaseOf(url)} WITH (FORCE)`)
  }

  async #import(engine: Contender['engine'], animals: number): Promise<string> {
    log(`importing ${animals.toLocaleString('en')} animals into ${engine}`)
    const url = engine === 'SQLite' ? `sqlite:${this.newFolder()}/pets.db` : await this.#newDatabase('template0')
    const stdin = new Response(linesOf(animals)).body
    const child = Bun.spawn([program, 'import', '--keep-ids', '-', '--database-url', url], { stdin, stderr: 'pipe' })
    const messages = await child.stderr.text()
    if ((await child.exited) !== 0) throw new Error(`petstore import failed: ${messages}`)
    // Otherwise PostgreSQL would do this in the background during a measurement.
    if (engine === 'PostgreSQL') await ask(url, 'VACUUM (ANALYZE) pets')
    return url
  }

  async #newDatabase(template: string): Promise<string> {
    this.#cluster ??= await startCluster()
    const name = `catalogue_${++this.#databases}`
    // By default, PostgreSQL would write all pages to its log.
    await ask(this.#cluster.url(), `CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE ${template} STRATEGY FILE_COPY`)
    return new URL(name, this.#cluster.url()).href
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster?.[Symbol.asyncDispose]()
    this.#folder[Symbol.dispose]()
  }
}

const databaseOf = (url: string) => new URL(url).pathname.slice(1)

/** NDJSON in chunks: ten million lines are too long for one string. */
async function* linesOf(animals: number): AsyncGenerator<Uint8Array> {
  for (let after = 0; after < animals; after += 1_000) {
    const lines = animalsAfter(after, 1_000).map(each => `${JSON.stringify(each)}\n`)
    yield Buffer.from(lines.join(''))
  }
}
