import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Ended, petstore, projectFolder, run, testMsMax } from '../support/process.ts'
import { startScriptedServer } from '../support/scripted-server.ts'
import { type Service, startService } from '../support/service.ts'

setDefaultTimeout(testMsMax)

let service: Service
let empty: Service

beforeAll(async () => {
  service = await startService()
  empty = await startService()
  const { pets } = service.stores
  await pets.create({ name: 'Rex', categoryId: 7n, status: 'available' })
  await pets.create({ name: 'Tom \u001b[31m\nin red', categoryId: 2n ** 63n - 1n, status: 'sold' })
  for (let i = 3; i <= 250; i++) await pets.create({ name: `Animal ${i}`, categoryId: -BigInt(i) })
})

afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await empty[Symbol.asyncDispose]()
})

function environmentOf({ origin, key }: Service): Record<string, string> {
  return { PETSTORE_URL: `${origin}/v1`, PETSTORE_API_KEY: key }
}

/** `bin/petstore pets ARGS`, pointed to a service by its environment. */
function pets(args: readonly string[], env = environmentOf(service)): Promise<Ended> {
  return petstore(['pets', ...args], { cwd: tmpdir(), env })
}

function idsIn(ndjson: string): number[] {
  return ndjson
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line).id)
}

function upTo(last: number): number[] {
  return Array.from({ length: last }, (_, i) => i + 1)
}

describe('pets list', () => {
  test('prints a table, in which no name controls the terminal', async () => {
    expect(await pets(['list', '--limit', '3'])).toEqual({
      exitCode: 0,
      stdout: [
        'ID  STATUS     CATEGORY             NAME',
        '1   available  7                    Rex',
        '2   sold       9223372036854775807  Tom \\u001b[31m\\u000ain red',
        '3   -          -3                   Animal 3',
        '',
      ].join('\n'),
      stderr: 'There are more animals: --all lists all\n',
    })
  })

  test('--json prints one object per line, with exact integers', async () => {
    expect(await pets(['list', '--json', '--limit=3'])).toEqual({
      exitCode: 0,
      stdout: [
        '{"id":1,"name":"Rex","categoryId":7,"status":"available"}',
        '{"id":2,"name":"Tom \\u001b[31m\\nin red","categoryId":9223372036854775807,"status":"sold"}',
        '{"id":3,"name":"Animal 3","categoryId":-3}',
        '',
      ].join('\n'),
      stderr: '',
    })
  })

  test.each([
    [[], 20],
    [['--limit', '101'], 101],
    [['--limit', '9999'], 250],
    [['--all'], 250],
  ])('%p prints %d animals, over all pages', async (args, count) => {
    const { exitCode, stdout, stderr } = await pets(['list', '--json', ...args])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(idsIn(stdout)).toEqual(upTo(count))
  })

  test('--all prints one table, and --status filters', async () => {
    const { stdout, stderr } = await pets(['list', '--all'])
    expect(stdout.match(/^ID /gm)).toHaveLength(1)
    expect(stdout.split('\n')).toHaveLength(252)
    expect(stderr).toBe('')
    expect(idsIn((await pets(['list', '--status', 'sold', '--json'])).stdout)).toEqual([2])
  })

  test.each([
    [[], 'The pet store has no animals\n'],
    [['--status', 'sold'], 'No animal is sold\n'],
    [['--json'], ''],
  ])('%p of an empty store prints no animal', async (args, stderr) => {
    expect(await pets(['list', ...args], environmentOf(empty))).toEqual({ exitCode: 0, stdout: '', stderr })
  })

  test.each(['', '--json'])('ends quietly when the reader closes the pipe: --all %s | head -1', async json => {
    const command = `${join(projectFolder, 'bin/petstore')} pets list --all ${json} | head -1; echo "\${PIPESTATUS[0]}"`
    // More than a pipe holds, so that the end of its reader is noticed.
    await using wide = startScriptedServer(({ url }) => {
      const animals = upTo(100).map(id => ({ id, name: 'x'.repeat(1_000), categoryId: 7 }))
      const page = Number(new URL(url).searchParams.get('page'))
      const headers = { link: `<?page=${page + 1}>; rel="next"` }
      return Response.json(animals, { headers })
    })
    const env = { PETSTORE_URL: wide.url, PETSTORE_API_KEY: service.key }
    const { exitCode, stdout, stderr } = await run(['bash', '-c', command], { cwd: tmpdir(), env })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/^(ID .*|\{"id":1,.*)\n0\n$/)
  })
})

describe('pets add', () => {
  test('prints the animal with its new id', async () => {
    await using own = await startService()
    const env = environmentOf(own)
    expect(await pets(['add', 'Rex', '--category', '7', '--status', 'pending'], env)).toEqual({
      exitCode: 0,
      stdout: 'ID  STATUS   CATEGORY  NAME\n1   pending  7         Rex\n',
      stderr: '',
    })
    const args = ['add', '--category', '-9223372036854775808', '--json', '--', '--Kim 犬']
    expect(await pets(args, env)).toMatchObject({
      exitCode: 0,
      stdout: '{"id":2,"name":"--Kim 犬","categoryId":-9223372036854775808}\n',
    })
    expect((await own.call('/v1/pets')).json).toHaveLength(2)
  })

  test('prints why the service refuses it', async () => {
    const { exitCode, stdout, stderr } = await pets(['add', ' ', '--category', '7'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toMatch(/^petstore: .*name is blank: .*\n$/)
  })
})

describe('pets get', () => {
  const deprecated = /^petstore: getPet is deprecated since 2026-11-15 and will be removed on 2030-12-05; use .*\n/

  test('prints one animal, and that the operation is deprecated', async () => {
    const { exitCode, stdout, stderr } = await pets(['get', '2', '--json'])
    expect({ exitCode, ids: idsIn(stdout) }).toEqual({ exitCode: 0, ids: [2] })
    expect(stderr).toMatch(new RegExp(`${deprecated.source}$`))
  })

  test.each(['99999', '-1'])('of %s, which does not exist, fails', async id => {
    const { exitCode, stdout, stderr } = await pets(['get', id])
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toMatch(new RegExp(`${deprecated.source}petstore: .*${id}.*\n$`))
  })
})

describe('one line says what to do about', () => {
  async function failure(env: Record<string, string>, ...args: string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await pets(args.length > 0 ? args : ['list'], {
      ...environmentOf(service),
      ...env,
    })
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toMatch(/^petstore: [^\n]+\n$/)
    return stderr
  }

  test('a wrong key', async () => {
    const stderr = await failure({ PETSTORE_API_KEY: 'no-key-of-this-service' })
    expect(stderr).toContain('set PETSTORE_API_KEY to a key of http://127.0.0.1:')
    expect(stderr).not.toContain('no-key-of-this-service')
  })

  test('a key that may only read', async () => {
    const key = await service.newKey({ permission: 'read-only' })
    const stderr = await failure({ PETSTORE_API_KEY: key }, 'add', 'Rex', '--category', '7')
    expect(stderr).toContain('set PETSTORE_API_KEY to a key that may write')
  })

  test('a server that does not run', async () => {
    const gone = startScriptedServer(new Response())
    await gone[Symbol.asyncDispose]()
    expect(await failure({ PETSTORE_URL: gone.url })).toBe(
      `petstore: Nothing answers at ${gone.url}: start it with bin/petstore serve, or set PETSTORE_URL\n`,
    )
  })

  test('a base address without its version', async () => {
    const stderr = await failure({ PETSTORE_URL: service.origin })
    expect(stderr).toContain(`${service.origin} is not the base URL of a pet store: `)
  })

  test('another kind of server, whose page cannot control the terminal', async () => {
    await using other = startScriptedServer(
      new Response('<h1>\u001b[31mWelcome\u009b</h1>', { headers: { 'content-type': 'text/html' } }),
    )
    const stderr = await failure({ PETSTORE_URL: other.url })
    expect(stderr).toContain('is not the base URL of a pet store: ')
    expect(stderr).toContain('Welcome\\u009b')
  })

  test('a flag wins over its variable', async () => {
    const args = ['list', '--limit', '1', '--json', '--url', `${service.origin}/v1`, '--api-key', service.key]
    const ended = await pets(args, { PETSTORE_URL: 'nowhere', PETSTORE_API_KEY: 'no-key-of-this-service' })
    expect({ ...ended, stdout: idsIn(ended.stdout) }).toEqual({ exitCode: 0, stdout: [1], stderr: '' })
  })
})
