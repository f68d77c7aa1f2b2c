import { expect, setDefaultTimeout, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { resultLines } from '../../src/cli/conform.ts'
import { checks } from '../../src/conform/run.ts'
import { temporaryFolder } from '../support/folder.ts'
import { petstore, startServer, testMsMax } from '../support/process.ts'
import { answering, startWrongServer, type Wrongness } from '../support/wrong-server.ts'

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

test('our server passes with --strict, with the key from the environment', async () => {
  using folder = temporaryFolder()
  const env = { PETSTORE_API_KEY: apiKey }
  await using server = await startServer({ cwd: folder.path, env })
  const ended = await petstore(['conform', `${server.url}/`, '--strict'], { cwd: folder.path, env })
  expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
  const lines = ended.stdout.trimEnd().split('\n')
  expect(lines.filter(line => line.startsWith('✓ '))).toHaveLength(checks.length)
  expect(lines[0]).toStartWith('Contract: ')
  expect(lines.at(-1)).toMatch(/^http:.+\/v1: contract: \d+ passed, 0 failed, 0 skipped; decisions: \d+ passed/)
  for (const text of ['\u001b', '✗']) expect(ended.stdout).not.toContain(text)
})

test('another server passes without --strict, and fails with it', async () => {
  const plain = await conformWrong({})
  expect(plain).toMatchObject({ exitCode: 0, stderr: '' })
  expect(plain.stdout).toEndWith(`/v1: contract: ${contractChecks} passed, 0 failed, 0 skipped\n`)
  expect(plain.stdout).not.toContain('Decisions: ')
  const strict = await conformWrong({}, '--strict')
  expect(strict.exitCode).toBe(1)
  expect(strict.stdout).toContain(`contract: ${contractChecks} passed, 0 failed, 0 skipped; decisions: `)
})

test('a failed check prints what was expected, what was found and the rule', async () => {
  const { exitCode, stdout } = await conformWrong(badName)
  expect(exitCode).toBe(1)
  expect((await conformWrong(badName, '--json')).stdout).not.toContain('\u202e')
  expect(stdout).toMatch(
    /^✗ POST .+\n {4}expected: .+\n {4}found: {4}POST .+ 201 .+\n {4}rule: {5}docs\/interface\.md, createPet/m,
  )
  expect(stdout).toContain('<b>&\\"\\u001b[31m\\u202e')
  for (const control of ['\u001b', '\u202e']) expect(stdout).not.toContain(control)
})

test('--read-only skips the checks that write, and --json prints one document', async () => {
  const plain = await conformWrong({}, '--read-only')
  expect(plain.exitCode).toBe(0)
  expect(plain.stdout).toMatch(/^- POST \/pets .+ \(skipped: .+\)$/m)

  const { exitCode, stdout } = await conformWrong(badName, '--json', '--read-only', '--strict')
  const report = JSON.parse(stdout)
  expect(exitCode).toBe(1)
  expect(report).toMatchObject({ strict: true, readOnly: true })
  expect(report.checks).toHaveLength(checks.length)
  expect(report.checks[0]).toEqual({
    name: expect.any(String),
    rule: 'contract',
    where: expect.stringContaining('docs/interface.md, '),
    outcome: 'passed',
    ms: expect.any(Number),
  })
  const outcomes = report.checks.map(({ outcome }: { outcome: string }) => outcome)
  for (const outcome of ['passed', 'failed', 'skipped']) {
    expect(report.summary[outcome]).toBe(outcomes.filter((other: string) => other === outcome).length)
  }
})

test('the output does not contain the key, even if the server echoes it', async () => {
  const echo: Wrongness = {
    say: (reply, { headers }) => ({
      status: reply.status === 200 ? 200 : 500,
      body: `${'x'.repeat(240)}${headers.get('authorization')}`,
      headers: { 'X-Request-Id': headers.get('authorization') ?? 'none' },
    }),
  }
  for (const form of [[], ['--json']]) {
    const { exitCode, stdout, stderr } = await conformWrong(echo, '--strict', ...form)
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: '' })
    expect(stdout).toContain('[key]')
    expect(stdout).not.toContain('the-only')
  }
})

test.each<[string, (url: string) => string, string, RegExp]>([
  ['does not answer', () => 'http://127.0.0.1:1/v1', apiKey, /^petstore: .*http:\/\/127\.0\.0\.1:1\/v1.*\n$/],
  ['refuses the key', url => url, 'another-key-0123456789', /^petstore: .*\(401\).*\n$/],
  ['has no such path', url => url.replace('/v1', ''), 'the-only-key', /^petstore: .*\(404\).*\n$/],
])('a server that %s is reported in one line', async (_, urlOf, key, line) => {
  using server = startWrongServer()
  const ended = await petstore(['conform', urlOf(server.url), '--key', key], { cwd: tmpdir() })
  expect(ended).toEqual({ exitCode: 1, stdout: '', stderr: expect.stringMatching(line) })
  expect(ended.stderr).not.toContain(key)
})

test('marks are coloured on a terminal', () => {
  const [check] = checks
  if (!check) throw new Error('There is no check')
  expect(resultLines({ check, finding: { outcome: 'passed' } }, true)).toStartWith('\u001b[32m✓\u001b[0m ')
  const failed = { outcome: 'failed', expected: 'a', found: 'b' } as const
  expect(resultLines({ check, finding: failed }, true)).toStartWith('\u001b[31m✗\u001b[0m ')
  expect(resultLines({ check, finding: failed }, false)).toStartWith('✗ ')
})
