import { expect, setDefaultTimeout, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { resultLines } from '../../src/cli/conform.ts'
import { checks } from '../../src/conform/run.ts'
import { temporaryFolder } from '../support/folder.ts'
import { petstore, startServer, testMsMax } from '../support/process.ts'
import { startWrongServer, type Wrongness } from '../support/wrong-server.ts'
import { answering } from '../support/wrongness.ts'

setDefaultTimeout(testMsMax)

const apiKey = 'a-key-from-outside-0123456789'
const contractChecks = checks.filter(({ rule }) => rule === 'contract').length

/** Runs `petstore conform` against a server that is wrong in one way. */
async function conformWrong(wrongness: Wrongness, ...options: string[]) {
  using server = startWrongServer(wrongness)
  const args = ['conform', server.url, '--key', server.key, ...options]
  return await petstore(args, { cwd: tmpdir() })
}

const badName = answering(201, pet => ({ ...pet, name: '<b>&"\u001b[31m\u202e' }))

test('our server passes with --strict, and the key from the environment does', async () => {
  using folder = temporaryFolder()
  const env = { PETSTORE_API_KEY: apiKey }
  await using server = await startServer({ cwd: folder.path, env })
  const ended = await petstore(['conform', `${server.url}/`, '--strict'], { cwd: folder.path, env })
  expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
  const lines = ended.stdout.trimEnd().split('\n')
  expect(lines.filter(line => line.startsWith('✓ '))).toHaveLength(checks.length)
  expect(lines[0]).toBe('The contract: what the interface says')
  expect(lines.at(-1)).toMatch(
    /^http:.+\/v1: contract: \d+ passed, 0 failed, 0 skipped; decisions: \d+ passed/,
  )
  for (const text of ['\u001b', '✗']) expect(ended.stdout).not.toContain(text)
})

test('another server passes without --strict, and not with it', async () => {
  const plain = await conformWrong({})
  expect(plain).toMatchObject({ exitCode: 0, stderr: '' })
  expect(plain.stdout).toEndWith(`/v1: contract: ${contractChecks} passed, 0 failed, 0 skipped\n`)
  expect(plain.stdout).not.toContain('Our decisions')
  const strict = await conformWrong({}, '--strict')
  expect(strict.exitCode).toBe(1)
  expect(strict.stdout).toContain(`contract: ${contractChecks} passed, 0 failed, 0 skipped; decisions: `)
})

test('a failed check says what was expected, what was found and where the rule is', async () => {
  const { exitCode, stdout } = await conformWrong(badName)
  expect(exitCode).toBe(1)
  expect(stdout).toMatch(
    /^✗ POST \/pets returns the name and the categoryId as sent\n {4}expected: the name conform .+\n {4}found: {4}POST .+ returned 201 .+\n {4}rule: {5}docs\/interface\.md, createPet/m,
  )
  expect(stdout).toContain('<b>&\\"\\u001b[31m\\u202e')
  for (const unseen of ['\u001b', '\u202e']) expect(stdout).not.toContain(unseen)
})

test('--read-only skips what writes, and says so', async () => {
  const { exitCode, stdout } = await conformWrong({}, '--read-only')
  expect(exitCode).toBe(0)
  expect(stdout).toContain(
    '- POST /pets is 201 with the Pet and its id (skipped: it writes, and this run only reads)',
  )
})

test('--json prints one document', async () => {
  const { exitCode, stdout } = await conformWrong(badName, '--json', '--read-only', '--strict')
  const report = JSON.parse(stdout)
  expect(exitCode).toBe(1)
  expect(report).toMatchObject({ strict: true, readOnly: true })
  expect(report.checks).toHaveLength(checks.length)
  expect(report.checks[0]).toEqual({
    name: 'the base address ends in /v1',
    rule: 'contract',
    where: 'docs/interface.md, Base address',
    outcome: 'passed',
    ms: expect.any(Number),
  })
  const outcomes = report.checks.map(({ outcome }: { outcome: string }) => outcome)
  for (const outcome of ['passed', 'failed', 'skipped']) {
    expect(report.summary[outcome]).toBe(outcomes.filter((other: string) => other === outcome).length)
  }
})

test('a server that sends the key back does not bring it into any output', async () => {
  const talkative: Wrongness = {
    say: (reply, { headers }) => ({
      status: reply.status === 200 ? 200 : 500,
      body: `${'x'.repeat(240)}${headers.get('authorization')}`,
      headers: { 'X-Request-Id': headers.get('authorization') ?? 'none' },
    }),
  }
  for (const form of [[], ['--json']]) {
    const { exitCode, stdout, stderr } = await conformWrong(talkative, '--strict', ...form)
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: '' })
    expect(stdout).toContain('[key]')
    expect(stdout).not.toContain('the-only')
  }
})

test.each<[string, string, string, RegExp]>([
  [
    'that nobody listens at',
    'http://127.0.0.1:1/v1',
    apiKey,
    /^petstore: Cannot reach http:\/\/127\.0\.0\.1:1\/v1: .+\n$/,
  ],
  [
    'that refuses the key',
    'wrong',
    'another-key-0123456789',
    /^petstore: http.+ refuses the key \(401\): .+\n$/,
  ],
  ['with nothing at it', 'nothing', 'the-only-key', /^petstore: http.+\/pets does not exist \(404\): .+\n$/],
])('an address %s is one clear line', async (_, where, key, line) => {
  using server = startWrongServer()
  const url = { wrong: server.url, nothing: server.url.replace('/v1', '') }[where] ?? where
  const { exitCode, stdout, stderr } = await petstore(['conform', url, '--key', key], { cwd: tmpdir() })
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 1,
    stdout: '',
    stderr: expect.stringMatching(line),
  })
  expect(stderr).not.toContain(key)
})

test.each<[string, string[], RegExp]>([
  ['no address', [], /missing required argument 'url'/],
  [
    'no key',
    ['http://127.0.0.1:1/v1'],
    /^petstore: The key is missing: set PETSTORE_API_KEY, or give --key\n$/,
  ],
  [
    'a key of two words',
    ['http://127.0.0.1:1/v1', '--key', 'se cret'],
    /^petstore: Cannot use the key: .+\n$/,
  ],
  ['no such scheme', ['ftp://127.0.0.1/v1', '--key', 'secret'], /^petstore: Cannot read the address: .+\n$/],
  ['a password in the address', ['http://me:secret@127.0.0.1/v1', '--key', 'k'], /Cannot read the address/],
  ['an unknown option', ['http://127.0.0.1:1/v1', '--kee', 'secret'], /unknown option '--kee'/],
])('%s is misuse', async (_, args, message) => {
  const { exitCode, stdout, stderr } = await petstore(['conform', ...args], { cwd: tmpdir() })
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: expect.stringMatching(message),
  })
  expect(stderr).not.toMatch(/secret|se cret/)
})

test('on a terminal the marks are coloured', () => {
  const [check] = checks
  if (!check) throw new Error('There is no check')
  expect(resultLines({ check, finding: { outcome: 'passed' } }, true)).toStartWith('\u001b[32m✓\u001b[0m ')
  const failed = { outcome: 'failed', expected: 'a', found: 'b' } as const
  expect(resultLines({ check, finding: failed }, true)).toStartWith('\u001b[31m✗\u001b[0m ')
  expect(resultLines({ check, finding: failed }, false)).toStartWith('✗ ')
})
