import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { generateApiKey } from '../../src/api-key.ts'
import { type Crowd, openCrowd } from '../support/crowd.ts'
import { exchange, repliesIn } from '../support/exchange.ts'
import { temporaryFolder } from '../support/folder.ts'
import { residentBytes } from '../support/memory.ts'
import { loggedBy, type Server, startServer, testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const key = 'a-key-for-hostile-connections-01'
const head = `Host: pets.example\r\nAuthorization: Bearer ${key}\r\n`
/** More than the 10 s in which headers, and then a body, have to be there. */
const cutOffMsMax = 25_000
const growthBytesMax = 100 * 1024 ** 2

let folder: ReturnType<typeof temporaryFolder>
let server: Server
let port: number

beforeAll(async () => {
  folder = temporaryFolder()
  server = await startServer({ cwd: folder.path, env: { PETSTORE_API_KEY: key } })
  port = Number(new URL(server.url).port)
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

/** Somebody who comes anew is served within 2 seconds, and the catalogue is as empty as ever. */
async function expectOthersServed(): Promise<void> {
  const options = { expected: 1, quietMs: 1, waitMs: 2_000 }
  const { replies } = await exchange(port, [`GET /v1/pets HTTP/1.1\r\n${head}\r\n`], options)
  expect(replies).toMatchObject([{ status: 200, body: '[]' }])
}

/** Each crowd sends its bit every second, with others being served in between, until all have been cut off. */
async function dribble(...crowds: readonly (readonly [Crowd, string])[]): Promise<void> {
  const open = () => crowds.reduce((sum, [crowd]) => sum + crowd.open, 0)
  const deadline = Date.now() + cutOffMsMax
  while (open() > 0 && Date.now() < deadline) {
    for (const [crowd, bit] of crowds) crowd.send(bit)
    await expectOthersServed()
    await Bun.sleep(1_000)
  }
  expect(open()).toBe(0)
}

async function expectMemoryBounded(work: () => Promise<void>): Promise<void> {
  await expectOthersServed()
  const before = residentBytes(server.pid)
  await work()
  expect(residentBytes(server.pid) - before).toBeLessThan(growthBytesMax)
}

test('500 connections that send their headers a byte a second hold up nobody, and are cut off', async () => {
  await expectMemoryBounded(async () => {
    using crowd = await openCrowd(port, 500, `GET /v1/pets HTTP/1.1\r\n${head}X-Slow: `)
    await expectOthersServed()
    expect(crowd.open).toBe(500)
    await dribble([crowd, 'a'])
    // Nobody was answered: none of these requests was ever whole.
    expect(new Set(crowd.received)).toEqual(new Set(['']))
  })
})

test('500 connections that send a body a byte a second hold up nobody, and are told that it took too long', async () => {
  const start = `POST /v1/pets HTTP/1.1\r\n${head}`
  await expectMemoryBounded(async () => {
    using withLength = await openCrowd(port, 250, `${start}Content-Length: 60000\r\n\r\n`)
    using inChunks = await openCrowd(port, 250, `${start}Transfer-Encoding: chunked\r\n\r\n`)
    await expectOthersServed()
    expect([withLength.open, inChunks.open]).toEqual([250, 250])
    await dribble([withLength, ' '], [inChunks, '1\r\n \r\n'])
    for (const text of [...withLength.received, ...inChunks.received]) {
      const [reply, ...more] = repliesIn(text)
      expect(more).toEqual([])
      expect(JSON.parse(reply?.body ?? '')).toMatchObject({ code: 'request_timeout', status: 408 })
    }
  })
})

test('2,000 connections that say nothing hold up nobody, cost little and are cut off', async () => {
  await expectMemoryBounded(async () => {
    using crowd = await openCrowd(port, 2_000)
    for (let i = 0; i < 20; i++) await expectOthersServed()
    expect(crowd.open).toBe(2_000)
    await dribble([crowd, ''])
  })
})

test('300 connections that break off inside a body leave nothing behind', async () => {
  const sent = '{"name":"Half","categoryId":7,"more":"'
  const request = `POST /v1/pets HTTP/1.1\r\n${head}Content-Length: 1000\r\n\r\n${sent}`
  await expectMemoryBounded(async () => {
    for (let round = 0; round < 3; round++) {
      using crowd = await openCrowd(port, 100, request)
      await expectOthersServed()
      expect(crowd.open).toBe(100)
    }
    await Bun.sleep(200)
    await expectOthersServed()
  })
})

test('20,000 requests with wrong keys hold up nobody and cost little', async () => {
  const requestsEach = 20_000 / 32
  let refused = 0
  async function guess(): Promise<void> {
    for (let i = 0; i < requestsEach; i++) {
      const wrong = i % 2 === 0 ? generateApiKey() : `not-a-key-${crypto.randomUUID()}`
      const response = await server.fetch('/pets', wrong)
      await response.text()
      if (response.status === 401) refused++
    }
  }
  await expectMemoryBounded(async () => {
    let over = false
    const guesses = Promise.all(Array.from({ length: 32 }, guess)).finally(() => {
      over = true
    })
    while (!over) {
      await expectOthersServed()
      await Bun.sleep(50)
    }
    await guesses
  })
  expect(refused).toBe(20_000)
})

test('after all of that the server stops as ever', async () => {
  const stopped = await server.stop('SIGTERM')
  expect([stopped.exitCode, loggedBy(stopped)]).toEqual([0, ['info Stopping']])
})
