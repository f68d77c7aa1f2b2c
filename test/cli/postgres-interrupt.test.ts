import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { temporaryFolder } from '../support/folder.ts'
import { type Cluster, newDatabase, startCluster } from '../support/postgres.ts'
import { petstore, projectFolder, testMsMax, until } from '../support/process.ts'
import { describeWithOwnPostgres } from '../support/with-postgres.ts'
import { animalLines } from '../support/workplace.ts'

setDefaultTimeout(testMsMax)

const sessions = `
  SELECT wait_event_type FROM pg_stat_activity
  WHERE application_name = 'petstore' AND datname = current_database()`

describeWithOwnPostgres('Ctrl-C while PostgreSQL does not answer', () => {
  let cluster: Cluster

  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  /** An empty store in a database of its own, where another program holds a lock, and a folder to run commands in. */
  async function lockedStore(lock: string) {
    await using stack = new AsyncDisposableStack()
    const { path } = stack.use(temporaryFolder())
    const { url } = stack.use(await newDatabase(cluster.url()))
    const surroundings = { cwd: path, env: { DATABASE_URL: url } }
    expect((await petstore(['keys', 'create', '--name', 'till'], surroundings)).exitCode).toBe(0)
    const sql = stack.use(new SQL(url, { max: 1 }))
    await sql.unsafe('BEGIN')
    await sql.unsafe(lock)
    // On a connection of its own: within a transaction one sees what one saw first.
    const watching = stack.use(new SQL(url, { max: 1 }))
    const sessionsAre = (what: string, probe: (waits: readonly string[]) => boolean) =>
      until(what, async () => {
        const found = await watching.unsafe<{ wait_event_type: string }[]>(sessions)
        return probe(found.map(row => row.wait_event_type)) || undefined
      })
    const owned = stack.move()
    return {
      path,
      /** Runs a command until it waits for the lock. */
      async waiting(args: readonly string[], input = '') {
        const { PATH = '' } = process.env
        const child = Bun.spawn([join(projectFolder, 'bin/petstore'), ...args], {
          cwd: path,
          env: { PATH, ...surroundings.env },
          stdio: [Buffer.from(input), 'pipe', 'pipe'],
        })
        owned.defer(async () => {
          child.kill('SIGKILL')
          await child.exited
        })
        await sessionsAre('it to wait', waits => waits.includes('Lock'))
        return child
      },
      /** Until nobody but us is in the database any more. */
      async release() {
        await sql.unsafe('ROLLBACK')
        await sessionsAre('its session to end', waits => waits.length === 0)
      },
      exported: () => petstore(['export'], surroundings),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    }
  }

  /** Sends the signal, and gives what it said in the end. */
  async function interrupted(
    child: Bun.Subprocess<Buffer, 'pipe', 'pipe'>,
    signal: 'SIGINT' | 'SIGTERM',
    msMax: number,
  ) {
    child.kill(signal)
    const late = Bun.sleep(msMax).then(() => 'it runs on')
    expect(await Promise.race([child.exited, late])).toBe(1)
    return { stdout: await child.stdout.text(), stderr: await child.stderr.text() }
  }

  test.each([
    ['pet_ids', 'SIGINT'],
    ['pets', 'SIGTERM'],
  ] as const)(
    'export to a file, frozen while it waits for %s: %s ends it, and it leaves no file behind',
    async (table, signal) => {
      await using store = await lockedStore(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
      const child = await store.waiting(['export', 'out.ndjson'])
      expect(readdirSync(store.path)).toEqual([`out.ndjson.partial-${child.pid}`])
      cluster.freeze()
      try {
        const { stdout, stderr } = await interrupted(child, signal, 6_000)
        expect(stdout).toBe('')
        expect(stderr).toEndWith('petstore: Interrupted: there is no out.ndjson\n')
        expect(stderr).not.toMatch(/\n\s+at /)
        expect(readdirSync(store.path)).toEqual([])
      } finally {
        cluster.thaw()
      }
    },
  )

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'import - that waits for whoever adds animals: %s ends it, and nothing of it is in the store',
    async signal => {
      await using store = await lockedStore('SELECT last_id FROM pet_ids FOR UPDATE')
      const child = await store.waiting(['import', '-'], animalLines(3))
      const { stdout, stderr } = await interrupted(child, signal, 8_000)
      expect(stdout).toBe('')
      expect(stderr.trimEnd().split('\n').at(-1)).toMatch(
        /^petstore: .*(nothing is imported|look before you import again)$/,
      )
      expect(stderr).not.toMatch(/\n\s+at /)
      await store.release()
      expect(await store.exported()).toMatchObject({ exitCode: 0, stdout: '' })
    },
  )
})
