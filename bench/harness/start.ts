import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { benchKey } from '../load/load.ts'
import type { Contender, Given, Needs, Place } from './contender.ts'
import { type Session, stop } from './session.ts'
import { type Usage, usageOf } from './usage.ts'

/** A contender that answers. */
export interface Running extends AsyncDisposable {
  readonly contender: Contender
  /** http://127.0.0.1:PORT */
  readonly origin: string
  /** How many animals it was given. */
  readonly animals: number
  readonly firstAnswerMs: number
  usage(): Usage | undefined
}

const patienceMs = 30_000
const askEveryMs = 2
const modules = join(import.meta.dir, '../node_modules')

/** Why a contender cannot be measured on this machine; undefined where it can. */
export function lackOf({ packages = [], programs = [], variables = [] }: Needs = {}): string | undefined {
  const lacking = [
    ...packages.filter(name => !existsSync(join(modules, name))).map(name => `package ${name}`),
    ...programs.filter(name => !Bun.which(name)).map(name => `program ${name}`),
    ...variables.filter(name => !process.env[name]).map(name => `variable ${name}`),
  ]
  return lacking.length === 0 ? undefined : `no ${lacking.join(', no ')}`
}

/** Starts it in a folder of its own, on a free port, with a copy of what it serves, and waits for its first answer. */
export async function start(
  session: Session,
  contender: Contender,
  given: Given,
  env: Readonly<Record<string, string>> = {},
): Promise<Running> {
  const folder = session.folder(contender.name)
  const place: Place = { folder, port: await freePort(), file: join(folder, 'served') }
  await contender.prepare(place, given)
  const animals = Math.min(given.catalogue.animals, contender.animalsMax ?? Number.POSITIVE_INFINITY)
  const origin = `http://127.0.0.1:${place.port}`
  const requests = contender.requests('list', animals)
  const startedMs = performance.now()
  const child = launch(session, contender, place, env)
  const isThere = await answers(`${origin}${requests.kind === 'read' ? requests.path : '/'}`, child)
  const firstAnswerMs = performance.now() - startedMs
  if (!isThere) {
    await stop(child)
    throw new Error(`${contender.title} did not start: ${lastWords(folder)}`)
  }
  const usage = () => usageOf(child.pid)
  return { contender, origin, animals, firstAnswerMs, usage, [Symbol.asyncDispose]: () => stop(child) }
}

function launch(
  session: Session,
  contender: Contender,
  place: Place,
  env: Readonly<Record<string, string>>,
): Subprocess {
  const { PATH = '', HOME = '' } = process.env
  return session.spawn(contender.command(place), {
    cwd: place.folder,
    env: { PATH, HOME, NODE_ENV: 'production', PETSTORE_API_KEY: benchKey, ...contender.env?.(), ...env },
    // As a service would have it: what it says goes to files.
    stdout: Bun.file(join(place.folder, 'out')),
    stderr: Bun.file(join(place.folder, 'log')),
  })
}

async function answers(url: string, child: Subprocess): Promise<boolean> {
  const deadlineMs = performance.now() + patienceMs
  while (performance.now() < deadlineMs && child.exitCode === null) {
    try {
      const response = await fetch(url, { headers: { authorization: `Bearer ${benchKey}` } })
      await response.arrayBuffer()
      return response.ok
    } catch {
      await Bun.sleep(askEveryMs)
    }
  }
  return false
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}

function lastWords(folder: string): string {
  const said = ['log', 'out'].map(file => readFileSync(join(folder, file), 'utf8').trim())
  return said.filter(Boolean)[0]?.split('\n').at(-1) ?? 'it said nothing'
}
