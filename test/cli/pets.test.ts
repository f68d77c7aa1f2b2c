import { afterAll, beforeAll, expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { errorAnswer, startScriptedServer } from '../client/scripted-server.ts'
import { type Service, startService } from '../http/service.ts'
import { type Ended, petstore, program, refusal } from '../support/process.ts'
import { spawnOnTerminal, spawnPetstore } from './child.ts'

let service: Service

beforeAll(async () => {
  service = await startService()
  const { pets } = service.stores
  await pets.create({ name: 'Rex', categoryId: 7n, status: 'available' })
  await pets.create({ name: 'Tom \u001b[31m\nin red', categoryId: 2n ** 63n - 1n, status: 'sold' })
  for (let i = 3; i <= 250; i++) await pets.create({ name: `Animal ${i}`, categoryId: -BigInt(i) })
})

afterAll(() => service[Symbol.asyncDispose]())

function readEnvironment({ origin, key }: Service): Record<string, string> {
  return { PETSTORE_URL: origin, PETSTORE_API_KEY: key }
}

/** `bin/petstore pets ARGS`, pointed to a service by its environment. */
function pets(args: readonly string[], env = readEnvironment(service)): Promise<Ended> {
  return petstore(['pets', ...args], { cwd: tmpdir(), env })
}

const idsIn = (ndjson: string) => (Bun.JSONL.parse(ndjson) as { id: number }[]).map(({ id }) => id)
const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1)

const more = 'There are more animals: --all lists all\n'

test('pets list prints one table, or objects with exact integers; no name controls the terminal', async () => {
  expect(await pets(['list', '--limit', '3'])).toEqual({
    exitCode: 0,
    stdout: `\
ID  STATUS     CATEGORY             NAME
1   available  7                    Rex
2   sold       9223372036854775807  Tom \\u001b[31m\\u000ain red
3   -          -3                   Animal 3
`,
    stderr: more,
  })
  expect((await pets(['list', '--json', '--limit=3'])).stdout).toBe(`\
{"id":1,"name":"Rex","categoryId":7,"status":"available"}
{"id":2,"name":"Tom \\u001b[31m\\nin red","categoryId":9223372036854775807,"status":"sold"}
{"id":3,"name":"Animal 3","categoryId":-3}
`)
  const { stdout, stderr } = await pets(['list', '--limit', '9999'])
  expect([stdout.match(/^ID /gm)?.length, stdout.split('\n').length, stderr]).toEqual([1, 252, ''])
})

test.each([
  ['', upTo(20), more],
  ['--limit 101', upTo(101), more],
  ['--all', upTo(250), ''],
  ['--status sold', [2], ''],
])('pets list --json %s prints the animals of all pages', async (args, ids, said) => {
  const { exitCode, stdout, stderr } = await pets(['list', '--json', ...args.split(' ').filter(Boolean)])
  expect({ exitCode, stderr, ids: idsIn(stdout) }).toEqual({ exitCode: 0, stderr: said, ids })
})

test('pets get prints one animal and that the operation is deprecated, or that no animal has the id', async () => {
  const { exitCode, stdout, stderr } = await pets(['get', '2', '--json'])
  expect({ exitCode, ids: idsIn(stdout) }).toEqual({ exitCode: 0, ids: [2] })
  expect(stderr).toBe(`pets get is deprecated and will be removed on 5 December 2030: use ${program} pets list\n`)
  for (const id of ['99999', '-1']) {
    const message = expect.stringMatching(new RegExp(`^petstore: .*${id}.*\n$`))
    expect(await pets(['get', id])).toEqual({ exitCode: 1, stdout: '', stderr: message })
  }
})

/** A service with the animals 1 to 4, which are pending. */
async function fourPending() {
  const own = await startService()
  for (const name of ['Rex', 'Mia', 'Tom', 'Kim'])
    await own.stores.pets.create({ name, categoryId: 7n, status: 'pending' })
  const ids = async () => (await own.call('/v1/pets')).json.map(({ id }: { id: number }) => id)
  return Object.assign(own, { env: readEnvironment(own), ids })
}

test('pets add and pets update print the animal, or say why nothing has changed', async () => {
  await using own = await fourPending()
  const asTill = { ...own.env, PETSTORE_API_KEY: await own.newKey({ permission: 'read-write' }) }
  const bare = '{"id":1,"name":"-Kim","categoryId":-9}\n'
  for (const [line, stdout] of [
    ['add Rex --category 7 --status pending', 'ID  STATUS   CATEGORY  NAME\n5   pending  7         Rex\n'],
    [`add --category -${2n ** 63n} --json -- --犬`, `{"id":6,"name":"--犬","categoryId":-${2n ** 63n}}\n`],
    ['update 1 --status sold --if-status pending', 'ID  STATUS  CATEGORY  NAME\n1   sold    7         Rex\n'],
    ['update 1 --name -Kim -c -9 --no-status --json', bare],
  ] as const) {
    expect(await pets(line.split(' '), own.env)).toEqual({ exitCode: 0, stdout, stderr: '' })
  }
  for (const [line, problem, env] of [
    [
      'update 1 --name Tom --if-status pending',
      'Animal 1 has no status now, not pending: nothing has changed\n',
      own.env,
    ],
    ['update 9 --name Tom', 'No animal has id 9\n', own.env],
    ['update 1 --name Tom', `${program} keys create --name NAME --permission PERMISSION\n`, asTill],
  ] as const) {
    expect(await refusal(['pets', ...line.split(' ')], { cwd: tmpdir(), env })).toEndWith(problem)
  }
  expect((await own.call('/v1/pets/1')).text).toBe(bare.trimEnd())
})

test('pets remove shows and removes animals, each once, and none if one is missing', async () => {
  await using own = await fourPending()
  const remove = (line: string) => pets(['remove', '--yes', ...line.split(' ')], own.env)
  expect(await remove('1 8 2 -9')).toMatchObject({ exitCode: 1, stdout: '', stderr: expect.stringContaining('id 8') })
  expect(await own.ids()).toEqual([1, 2, 3, 4])
  const stderr = `ID  STATUS   CATEGORY  NAME\n3   pending  7         Tom\n1   pending  7         Rex\nRemoved animal 3\nRemoved animal 1\n`
  expect(await remove('3 1 3')).toEqual({ exitCode: 0, stdout: '', stderr })
  expect(await own.ids()).toEqual([2, 4])
})

test('pets remove stops at the first failure, and says what it removed', async () => {
  const found = [5, 6, 7, 8].map(id => Response.json({ id, name: 'Rex', categoryId: 7, status: 'sold' }))
  const gone = new Response(null, { status: 204 })
  await using server = startScriptedServer(...found, gone, gone, errorAnswer(500, 'internal_error'))
  const env = { PETSTORE_URL: server.url, PETSTORE_API_KEY: 'a-key-of-this-service' }
  const { exitCode, stderr } = await pets(['remove', '-y', '5', '6', '7', '8'], env)
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/\nRemoved animal 5\nRemoved animal 6\npetstore: .*internal_error\n$/)
  expect(server.requests.map(({ method, path }) => `${method} ${path}`).slice(4)).toEqual(
    [5, 6, 7].map(id => `DELETE /v1/pets/${id}?status=sold`),
  )
})

test.each([
  ['Yes\n', 0, 'Removed animal 2', [1, 3, 4]],
  ['\u0004', 1, 'petstore: Nothing was removed: answer y, or use --yes', [1, 2, 3, 4]],
])('on a terminal, pets remove shows the animals and asks: %j', async (answer, exitCode, last, left) => {
  await using own = await fourPending()
  await using terminal = spawnOnTerminal([program, 'pets', 'remove', '2'], { cwd: tmpdir(), env: own.env })
  await terminal.asks()
  expect(terminal.shown).toEndWith(
    `\r\n2   pending  7         Mia\r\nRemove 1 animal from ${own.origin}/v1 for good? [y/N] `,
  )
  terminal.type(answer)
  expect(await terminal.exited()).toBe(exitCode)
  expect(terminal.shown).toEndWith(`${last}\r\n`)
  expect(await own.ids()).toEqual(left)
})

test('a wait of more than a second is announced', async () => {
  const announced = Promise.withResolvers<void>()
  const limited = errorAnswer(429, 'rate_limited', { 'retry-after': '2' })
  await using server = startScriptedServer(limited, () => announced.promise.then(() => Response.json([])))
  const env = { PETSTORE_URL: server.url, PETSTORE_API_KEY: 'a-key-of-this-service' }
  await using child = spawnPetstore(['pets', 'list'], { cwd: tmpdir(), env })
  let printed = ''
  for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
    printed += text
    if (/Rate limited: waiting 2 s\nWaiting for /.test(printed)) announced.resolve()
  }
  expect(printed).toEndWith(`Rate limited: waiting 2 s\nWaiting for ${server.url}\nThe pet store has no animals\n`)
  expect(await child.exited).toBe(0)
})

test('one line says what to do about a failure, and no text from elsewhere controls the terminal', async () => {
  const page = new Response('<h1>\u001b[31mWelcome\u009b</h1>', { headers: { 'content-type': 'text/html' } })
  await using other = startScriptedServer(page)
  const wrongKey = 'no-key-of-this-service'
  const readOnlyKey = await service.newKey({ permission: 'read-only' })
  const failures: [Record<string, string>, string, ...string[]][] = [
    [{}, 'add \t -c 7', 'name is blank'],
    [{ PETSTORE_API_KEY: wrongKey }, 'list', `set PETSTORE_API_KEY to a key of ${service.origin}/v1; create one`],
    [{ PETSTORE_API_KEY: readOnlyKey }, 'add Rex -c 7', 'create one with '],
    [{ PETSTORE_URL: other.url }, 'list', 'is not the base URL of a pet store: ', 'Welcome\\u009b'],
    [{ PETSTORE_URL: `${service.origin}/shop/` }, 'list', '/shop/v1 is not the base URL of a pet store: '],
    [{ PETSTORE_URL: 'http://127.0.0.1:1' }, 'list', `(ECONNREFUSED); start it with ${program} serve`],
  ]
  for (const [env, line, ...advice] of failures) {
    const surroundings = { cwd: tmpdir(), env: { ...readEnvironment(service), ...env } }
    const stderr = await refusal(['pets', ...line.split(' ')], surroundings)
    expect(stderr).toMatch(/^petstore: [^\n]+\n$/)
    for (const text of advice) expect(stderr).toContain(text)
    expect(stderr).not.toContain(wrongKey)
  }
})
