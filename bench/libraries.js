// `npm run bench -- libraries`: the CPU time of libraries that could take the place of parts of the petstore.
import { Histogram, Registry } from '@prometheus-io/client'
import { Ajv } from 'ajv'
import { RegExpRouter } from 'hono/router/reg-exp-router'
import { SmartRouter } from 'hono/router/smart-router'
import { TrieRouter } from 'hono/router/trie-router'
import { pino } from 'pino'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { BufferedLog } from '../src/cli/log.ts'
import { Exchange } from '../src/http/exchange.ts'
import { Metrics } from '../src/http/metrics.ts'
import { operations, versionPrefix } from '../src/http/operations.ts'
import { RateLimiter } from '../src/http/rate-limit.ts'
import { Router } from '../src/http/router.ts'
import { readInt64 } from '../src/int64.ts'
import { newPetRequired, petName, petStatus, readNewPet } from '../src/pet.ts'
import { quartiles, showNumber, table } from './measure.ts'
import { petstore } from './parts.ts'
import { Server, Stores } from './server.ts'

const rounds = 15
const callsPerRound = 20_000

const path = `${versionPrefix}/pets/555555`
const exchange = new Exchange(new Request(`http://127.0.0.1${path}`), undefined, undefined)

function routers() {
  const handle = () => Promise.reject(new Error('not called'))
  const rows = Object.values(operations)
  const routes = rows.map(({ method, path, access }) => ({ method, path: versionPrefix + path, access, handle }))
  const ours = new Router(routes)
  const theirs = new SmartRouter({ routers: [new RegExpRouter(), new TrieRouter()] })
  for (const { method, path, handle } of routes) theirs.add(method, path.replace(/\{(\w+)\}/g, ':$1'), handle)
  return [() => ours.find(path), () => theirs.match('GET', path)]
}

function logs() {
  const fields = {
    requestId: exchange.id,
    method: 'GET',
    operation: 'getPet',
    status: 200,
    durationMs: 0.1,
    key: 'till',
  }
  const ours = new BufferedLog('info', { err: () => {}, isTerminal: false, isStyled: false })
  const theirs = pino({}, { write() {} })
  return [() => ours.write('info', 'request', fields), () => theirs.info(fields, 'request')]
}

function metrics() {
  const stores = { activity: () => ({ writesWaiting: 0, isWritable: true }) }
  const sweep = { keysDeleted: 0, completedAtMs: 0 }
  const ours = new Metrics({ stores, sweep, build: { version: '', commit: '' } })
  const labelNames = ['operation', 'status']
  const theirs = new Histogram({ name: 'seconds', help: 'Seconds', labelNames, registers: [new Registry()] })
  return [
    () => ours.requestEnded('getPet', 200, 0.001),
    () => theirs.observe({ operation: 'getPet', status: '200' }, 0.001),
  ]
}

function rateLimits() {
  const ours = new RateLimiter({ requests: 1e9, seconds: 60 })
  const theirs = new RateLimiterMemory({ points: 1e9, duration: 60 })
  return [() => ours.count(exchange), () => theirs.consume('a key')]
}

function checks() {
  const body = { name: 'Rex', categoryId: 7, status: 'available' }
  const int64 = { keyword: 'int64', validate: (_, value) => readInt64(value) !== undefined }
  const properties = { name: petName.schema, categoryId: { int64: true }, status: petStatus.schema }
  const theirs = new Ajv({ allErrors: true, keywords: [int64] })
  const validate = theirs.compile({ type: 'object', properties, required: newPetRequired })
  return [() => readNewPet(body), () => validate(body)]
}

/** Microseconds of CPU time for each call. */
async function time(call) {
  const before = process.cpuUsage()
  for (let count = 0; count < callsPerRound; count++) {
    const result = call()
    if (result instanceof Promise) await result
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / callsPerRound
}

/** Microseconds of CPU time for a whole request. */
async function timeOfGet() {
  await using stores = new Stores()
  await using server = new Server(petstore, await stores.fill(petstore), stores.folder)
  await server.verify()
  await server.send('get', 2).sent
  return (await server.send('get', 5).sent).cpuTime / 1_000
}

/** A call of our part, and one of the library. */
const comparisons = {
  'Hono, router': routers(),
  'pino, log': logs(),
  '@prometheus-io/client, metrics': metrics(),
  'rate-limiter-flexible': rateLimits(),
  'ajv, check of a body': checks(),
}

const getTime = await timeOfGet()
const rows = []
for (const [name, [ours, theirs]] of Object.entries(comparisons)) {
  const times = []
  for (let round = 0; round < rounds; round++) times.push([await time(ours), await time(theirs)])
  const ratio = quartiles(times.map(([our, their]) => their / our)).median
  const more = quartiles(times.map(([our, their]) => ((their - our) / getTime) * 100)).median
  rows.push([name, showNumber(ratio), `${showNumber(more)}%`])
}
process.stdout.write(`${table(['Library', 'CPU time of a call, ours = 1', 'More, of a whole get'], rows)}\n`)
