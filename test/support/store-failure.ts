import { expect } from 'bun:test'
import { temporaryFolder } from './folder.ts'
import { newDatabase } from './postgres.ts'
import { loggedBy, petstore, type Server, startServer } from './process.ts'
import { expectEachOnce, type Load, portOf, startLoad } from './store-load.ts'

export const key = 'a-key-for-failures-0123456789'
export const drainMs = 2_000
const password = 'nobody-may-read-this-password'

/** The address with a password, which a server that trusts everybody does not look at. */
const withPassword = (url: string): string => url.replace('postgres@', `postgres:${password}@`)

/** The program itself on an empty database of its own, both gone with the test. */
export interface Serving extends AsyncDisposable {
  readonly server: Server
  readonly url: string
  readonly port: number
}

export async function serveOn(adminUrl: string, ...flags: string[]): Promise<Serving> {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await newDatabase(adminUrl))
  const serving = stack.use(await serveFrom(url, ...flags))
  const owned = stack.move()
  return { ...serving, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** The same on a database that is there already, and stays. */
export async function serveFrom(url: string, ...flags: string[]): Promise<Serving> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder())
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: withPassword(url), PETSTORE_DRAIN_TIME: `${drainMs}ms` }
  const args = ['serve', '--port', '0', ...flags]
  const server = stack.use(await startServer({ cwd: folder.path, env, args }))
  const owned = stack.move()
  return { server, url, port: portOf(server), [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** A key in the store itself: its uses are written down, too. */
export async function createStoreKey({ url }: Serving): Promise<string> {
  using folder = temporaryFolder()
  const { stdout } = await petstore(['keys', 'create', '--name', 'till', '--database-url', url], {
    cwd: folder.path,
  })
  return stdout.trim()
}

/**
 * Clients keep the service busy while something happens to its database; what must be true of any of that is seen to. Gives
 * what the service has logged.
 */
export async function underLoad(
  { server, port }: Serving,
  happen: (load: Load, server: Server) => Promise<void>,
): Promise<readonly string[]> {
  const load = startLoad(port, key)
  try {
    await happen(load, server)
  } finally {
    await load.stop()
  }
  expect(load.wrong.slice(0, 5)).toEqual([])
  expect(load.unavailable).toBeGreaterThan(0)
  await expectEachOnce(load, port, key)
  const ended = await server.stop('SIGTERM')
  expect(ended.exitCode).toBe(0)
  expectToldWithoutPassword(ended.stderr)
  const logged = loggedBy(ended)
  expect(logged).not.toContain('error fault')
  const { acknowledged, unavailable, slowestMs } = load
  process.stdout.write(
    `${acknowledged.size} animals acknowledged, ${unavailable} answers 503, the slowest after ${Math.round(slowestMs)} ms\n`,
  )
  return logged
}

export function expectToldWithoutPassword(stderr: string): void {
  expect(stderr).toMatch(/"message":"store unavailable".*"cause":"PostgreSQL[: ]/)
  expect(stderr).not.toContain(password)
  expect(stderr).not.toContain(key)
}
