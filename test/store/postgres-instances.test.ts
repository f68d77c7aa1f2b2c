import { expect, setDefaultTimeout, test } from 'bun:test'
import { SQL } from 'bun'
import { animalBody, answerMsMax, key, Load, serveFrom } from '../support/load.ts'
import { describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { petstore, type Server, startServer, temporaryFolder, testMsMax, until } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const instancesAtOnce = 8

/** A revoked key is refused on every instance by then. */
const revokedMsMax = 5_000

/** The database ends the transaction of a stopped instance after 8 s. */
const stoppedMsMax = 12_000

async function add({ url }: Server, number: number) {
  const response = await fetch(`${url}/pets`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'idempotency-key': `animal-${number}` },
    body: animalBody(number),
    signal: AbortSignal.timeout(15_000),
  })
  return { status: response.status, text: await response.text() }
}

const statusWith = async (server: Server, sentKey: string) => (await server.fetch('/pets', sentKey)).status

describeWithPostgres('several instances on one PostgreSQL database', () => {
  async function startTwo() {
    await using stack = new AsyncDisposableStack()
    const { url } = stack.use(await sharedDatabase())
    const { server: one } = stack.use(await serveFrom(url))
    const { server: other } = stack.use(await serveFrom(url))
    const owned = stack.move()
    return { url, one, other, [Symbol.asyncDispose]: () => owned.disposeAsync() }
  }

  test.concurrent('an animal that one has acknowledged is listed and fetched by the other at once', async () => {
    await using instances = await startTwo()
    const { one, other } = instances
    for (let number = 0; number < 40; number++) {
      const [here, there] = number % 2 === 0 ? [one, other] : [other, one]
      const { status, text } = await add(here, number)
      expect(status).toBe(201)
      const { id } = JSON.parse(text)
      expect(await (await there.fetch(`/pets/${id}`, key)).text()).toBe(text)
      expect(await (await there.fetch('/pets?limit=100', key)).text()).toEndWith(`${text}]`)
    }
  })

  test.concurrent('both accept a new key at once, and refuse it within 5 seconds of its revocation', async () => {
    await using instances = await startTwo()
    const { url, one, other } = instances
    using folder = temporaryFolder()
    const keys = (...args: string[]) => petstore(['keys', ...args], { cwd: folder.path, env: { DATABASE_URL: url } })
    const created = (await keys('create', '--name', 'till')).stdout.trim()
    const both = () => Promise.all([statusWith(one, created), statusWith(other, created)])
    expect(await both()).toEqual([200, 200])
    const revoking = keys('revoke', 'till')
    await until(
      'the revocation',
      async () => ((await both()).every(status => status === 401) && (await revoking)) || undefined,
      revokedMsMax,
    )
    expect((await revoking).exitCode).toBe(0)
    expect(await both()).toEqual([401, 401])
  })

  test.concurrent(`${instancesAtOnce} started at once on an empty database migrate it once, and create one first key`, async () => {
    await using stack = new AsyncDisposableStack()
    const { url } = stack.use(await sharedDatabase())
    const folder = stack.use(temporaryFolder())
    const options = { cwd: folder.path, env: { DATABASE_URL: url } }
    const started = Array.from({ length: instancesAtOnce }, () => startServer(options))
    // Stops those that have started even if another one has not.
    const outcomes = await Promise.allSettled(started)
    for (const outcome of outcomes) if (outcome.status === 'fulfilled') stack.use(outcome.value)
    const servers = await Promise.all(started)
    const firstKeys = servers.flatMap(({ stdout }) => /shown only this once: (\S+)/.exec(stdout)?.[1] ?? [])
    expect(firstKeys).toHaveLength(1)
    const statuses = await Promise.all(servers.map(server => statusWith(server, firstKeys[0] ?? '')))
    expect(statuses).toEqual(Array(instancesAtOnce).fill(200))
    const listed = await petstore(['keys', 'list', '--json'], options)
    expect(JSON.parse(listed.stdout)).toHaveLength(1)
  })

  test.concurrent('one that is stopped during a creation delays the others for seconds only, and loses and doubles no animal', async () => {
    await using instances = await startTwo()
    const { url, one, other } = instances
    await using admin = new SQL(url, { max: 1 })
    const load = new Load(one.port, key, 4)
    await until('it to be stopped while it holds the lock', async () => {
      await Bun.sleep(20 + Math.random() * 50)
      process.kill(one.pid, 'SIGSTOP')
      if ((await admin.unsafe(inTransaction)).length > 0) return true
      process.kill(one.pid, 'SIGCONT')
      return undefined
    })
    await until(
      'the other to add again',
      async () => {
        const sentAt = performance.now()
        const { status } = await add(other, 1_000_000)
        expect(performance.now() - sentAt).toBeLessThan(answerMsMax)
        return status === 201 || undefined
      },
      stoppedMsMax,
    )
    process.kill(one.pid, 'SIGCONT')
    await load.stop()
    const tooLate = /only after|503/
    expect(load.wrong.filter(text => !tooLate.test(text))).toEqual([])
    const rows = await admin.unsafe('SELECT count(*)::int AS animals, count(DISTINCT name)::int AS names FROM pets')
    expect(rows[0].names).toBe(rows[0].animals)
  })
})

const inTransaction = `
  SELECT 1 FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()
    AND state = 'idle in transaction' AND pid IN (
      SELECT pid FROM pg_locks WHERE relation = 'pet_ids'::regclass AND mode = 'RowShareLock')`
