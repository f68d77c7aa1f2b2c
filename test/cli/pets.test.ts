import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { errorAnswer, startScriptedServer } from '../client/scripted-server.ts'
import { type Ended, petstore, program, refusal } from '../support/process.ts'
import { type Service, startService } from '../support/service.ts'

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

describe('pets list', () => {
  test('prints one table, in which no name controls the terminal', async () => {
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
    const { stdout, stderr } = await pets(['list', '--limit', '9999'])
    expect([stdout.match(/^ID /gm)?.length, stdout.split('\n').length, stderr]).toEqual([1, 252, ''])
  })

  test('--json prints one object per line, with exact integers', async () => {
    expect(await pets(['list', '--json', '--limit=3'])).toEqual({
      exitCode: 0,
      stdout: `\
{"id":1,"name":"Rex","categoryId":7,"status":"available"}
{"id":2,"name":"Tom \\u001b[31m\\nin red","categoryId":9223372036854775807,"status":"sold"}
{"id":3,"name":"Animal 3","categoryId":-3}
`,
      stderr: more,
    })
  })

  test.each([
    ['', upTo(20), more],
    ['--limit 101', upTo(101), more],
    ['--all', upTo(250), ''],
    ['--status sold', [2], ''],
  ])('%s prints the animals of all pages', async (args, ids, said) => {
    const { exitCode, stdout, stderr } = await pets(['list', '--json', ...args.split(' ').filter(Boolean)])
    expect({ exitCode, stderr, ids: idsIn(stdout) }).toEqual({ exitCode: 0, stderr: said, ids })
  })

  test.each([
    ['list --status sold', 'No animal is sold\n'],
    ['list --json', ''],
  ])('%s of an empty store prints no animal', async (line, stderr) => {
    await using empty = startScriptedServer(Response.json([]))
    const env = { PETSTORE_URL: empty.url, PETSTORE_API_KEY: service.key }
    expect(await pets(line.split(' '), env)).toEqual({ exitCode: 0, stdout: '', stderr })
  })
})

test('pets add prints the animal with its new id', async () => {
  await using own = await startService()
  const env = readEnvironment(own)
  expect(await pets(['add', 'Rex', '--category', '7', '--status', 'pending'], env)).toEqual({
    exitCode: 0,
    stdout: 'ID  STATUS   CATEGORY  NAME\n1   pending  7         Rex\n',
    stderr: '',
  })
  const stdout = '{"id":2,"name":"--Kim 犬","categoryId":-9223372036854775808}\n'
  const args = ['add', '--category', '-9223372036854775808', '--json', '--', '--Kim 犬']
  expect(await pets(args, env)).toMatchObject({ exitCode: 0, stdout })
  expect((await own.call('/v1/pets')).json).toHaveLength(2)
})

test('pets get prints one animal, or that none has the id, and after a success that the operation is deprecated', async () => {
  const { exitCode, stdout, stderr } = await pets(['get', '2', '--json'])
  expect({ exitCode, ids: idsIn(stdout) }).toEqual({ exitCode: 0, ids: [2] })
  expect(stderr).toBe(`pets get is deprecated and will be removed on 5 December 2030: use ${program} pets list\n`)
  for (const id of ['99999', '-1']) {
    const message = expect.stringMatching(new RegExp(`^petstore: .*${id}.*\n$`))
    expect(await pets(['get', id])).toEqual({ exitCode: 1, stdout: '', stderr: message })
  }
})

test('a wait of more than a second is announced, and --key is another name of --api-key', async () => {
  const limited = errorAnswer(429, 'rate_limited', { 'retry-after': '2' })
  const slow = async () => {
    await Bun.sleep(1_500)
    return Response.json([])
  }
  await using server = startScriptedServer(limited, slow)
  const { url } = server
  expect(await pets(['list', '--url', url, '--key', 'a-key-of-this-service'], {})).toEqual({
    exitCode: 0,
    stdout: '',
    // On a busy machine, the first response may take a second, too.
    stderr: expect.stringMatching(
      new RegExp(
        `^(Waiting for ${url}\n)?Rate limited: waiting 2 s\nWaiting for ${url}\nThe pet store has no animals\n$`,
      ),
    ),
  })
  expect(server.requests.map(({ headers }) => headers.get('authorization'))).toEqual(
    Array(2).fill('Bearer a-key-of-this-service'),
  )
})

describe('one line says what to do about', () => {
  /** Runs the command with other variables, and returns the line. */
  async function failure(env: Record<string, string>, ...args: string[]): Promise<string> {
    const stderr = await refusal(['pets', ...args], { cwd: tmpdir(), env: { ...readEnvironment(service), ...env } })
    expect(stderr).toMatch(/^petstore: [^\n]+\n$/)
    return stderr
  }

  test('an invalid animal, a wrong key and a key that may only read', async () => {
    expect(await failure({}, 'add', ' ', '--category', '7')).toContain('name is blank: ')
    const wrong = await failure({ PETSTORE_API_KEY: 'no-key-of-this-service' }, 'list')
    expect(wrong).toContain('set PETSTORE_API_KEY to a key of http://127.0.0.1:')
    expect(wrong).not.toContain('no-key-of-this-service')
    const readOnly = { PETSTORE_API_KEY: await service.newKey({ permission: 'read-only' }) }
    const refused = await failure(readOnly, 'add', 'Rex', '--category', '7')
    expect(refused).toContain('Use a key that may write; set PETSTORE_API_KEY to it')
  })

  test('a server that does not run, a wrong base address, and another kind of server', async () => {
    const page = new Response('<h1>\u001b[31mWelcome\u009b</h1>', { headers: { 'content-type': 'text/html' } })
    const other = startScriptedServer(page)
    const welcome = await failure({ PETSTORE_URL: other.url }, 'list')
    expect(welcome).toContain('is not the base URL of a pet store: ')
    // The page cannot control the terminal.
    expect(welcome).toContain('Welcome\\u009b')
    await other[Symbol.asyncDispose]()
    expect(await failure({ PETSTORE_URL: other.url }, 'list')).toBe(
      `petstore: Cannot reach ${other.url}: nothing answers there (ECONNREFUSED); start it with ${program} serve, or check the address\n`,
    )
    const wrongPath = await failure({}, 'list', '--url', `${service.origin}/shop/`)
    expect(wrongPath).toContain(`${service.origin}/shop/v1 is not the base URL of a pet store: `)
  })
})
