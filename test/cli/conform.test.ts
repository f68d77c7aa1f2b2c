import { expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { contractChecks } from '../../src/conform/contract.ts'
import { answering, changing, type Defect, startWrongServer } from '../conform/wrong-server.ts'
import { petstore, program, startServer, temporaryFolder, until } from '../support/process.ts'
import { spawnOnTerminal } from './child.ts'

const apiKey = 'a-key-from-outside-0123456789'

/** Runs `petstore conform` against a server with these defects. */
async function conformWrong(defects: readonly Defect[], ...options: string[]) {
  using server = startWrongServer(...defects)
  return await petstore(['conform', '--yes', server.url, '--key', server.key, ...options], { cwd: tmpdir() })
}

const badName = answering(201, pet => ({ ...pet, name: '<b>&"\u001b[31m\u202e' }))
const badStatus = answering(404, body => ({ ...body, status: 500n }))

test('our server passes, with its address without /v1, and the key from the environment', async () => {
  const env = { PETSTORE_API_KEY: apiKey }
  await using server = await startServer({ env })
  const ours = await petstore(['conform', '-y', server.url.replace('v1', '')], { cwd: tmpdir(), env })
  const warning = `This adds up to 30 animals, named "conform ...", to ${server.url} and removes none.\n`
  expect(ours).toMatchObject({ exitCode: 0, stderr: warning })
  const lines = ours.stdout.split('\n')
  expect(lines.slice(0, contractChecks.length)).toEqual(contractChecks.map(({ name }) => `✓ ${name}`))
  const summary = `${contractChecks.length} passed, 0 failed, 0 skipped`
  expect(lines.slice(contractChecks.length)).toEqual(['', `${server.url}: ${summary}`, ''])
})

test('a failed check prints what was expected, what was found and the rule', async () => {
  const { exitCode, stdout } = await conformWrong([badName])
  expect(exitCode).toBe(1)
  expect(stdout).toMatch(
    /^✗ POST .+\n {4}expected: .+\n {4}found: {4}POST .+ 201 .+\n {4}rule: {5}docs\/interface\.md, createPet/m,
  )
  expect(stdout).toContain('<b>&\\"\\u001b[31m\\u202e')
  for (const control of ['\u001b', '\u202e']) expect(stdout).not.toContain(control)
})

test('--read-only skips the checks that write, and --json prints one document', async () => {
  const plain = await conformWrong([], '--read-only')
  expect(plain).toMatchObject({ exitCode: 0, stderr: '' })
  expect(plain.stdout).toMatch(/^- POST \/pets .+ \(skipped: .+\)$/m)

  expect((await conformWrong([badName], '--json')).stdout).not.toContain('\u202e')
  const { exitCode, stdout } = await conformWrong([badStatus], '--json', '--read-only')
  const report = JSON.parse(stdout)
  expect(exitCode).toBe(1)
  expect(report).toMatchObject({ url: expect.stringContaining('/v1'), readOnly: true })
  expect(report.checks).toHaveLength(contractChecks.length)
  const [name, where] = [expect.any(String), expect.stringContaining('docs/interface.md, ')]
  const first = report.checks.find(({ outcome }: { outcome: string }) => outcome === 'passed')
  expect(first).toEqual({ name, where, outcome: 'passed' })
  const { passed, failed, skipped } = report.summary
  expect(Math.min(passed, failed, skipped)).toBeGreaterThan(0)
  expect(passed + failed + skipped).toBe(contractChecks.length)
})

test('the output does not contain the key, even if the server echoes it', async () => {
  const echo = changing((reply, { headers }) => ({
    status: reply.status === 200 ? 200 : 500,
    body: `${'x'.repeat(240)}${headers.get('authorization')}`,
  }))
  for (const form of [[], ['--json']]) {
    const { exitCode, stdout, stderr } = await conformWrong([echo], ...form)
    expect(exitCode).toBe(1)
    expect(stdout).toContain('[key]')
    expect(stdout + stderr).not.toContain('the-only')
  }
})

test.each<[string, (url: string) => string, string, RegExp]>([
  ['does not answer', () => 'http://127.0.0.1:1/v1', apiKey, /^petstore: .*http:\/\/127\.0\.0\.1:1\/v1.*\n$/],
  ['refuses the key', url => url, 'another-key-0123456789', /^petstore: .*\(401\).*\n$/],
  [
    'has no such path',
    url => url.replace('v1', 'shop'),
    'the-only-key',
    /^petstore: .*\/shop\/v1\/pets .*\(404\).*\n$/,
  ],
])('a server that %s is reported in one line', async (_, urlOf, key, line) => {
  using server = startWrongServer()
  const ended = await petstore(['conform', '--yes', urlOf(server.url), '--api-key', key], { cwd: tmpdir() })
  expect(ended).toEqual({ exitCode: 1, stdout: '', stderr: expect.stringMatching(line) })
  expect(ended.stderr).not.toContain(key)
})

/** Runs `petstore conform` in a pseudo-terminal, with stdout to a file, and types the answer if it asks. */
async function conformOnTerminal(answer: string, ...options: string[]) {
  using server = startWrongServer()
  using folder = temporaryFolder()
  const command = ['sh', '-c', `exec "${program}" conform "$@" > out`, '', server.url, ...options]
  const env = { PETSTORE_API_KEY: server.key }
  await using terminal = spawnOnTerminal(command, { cwd: folder.path, env })
  await until('the question or the end', () => terminal.shown.includes('[y/N]') || terminal.hasEnded() || undefined)
  const writesBefore = server.methods.filter(method => method !== 'GET').length
  terminal.type(answer)
  const exitCode = await terminal.exited()
  const writes = server.methods.filter(method => method !== 'GET').length
  const stdout = await Bun.file(join(folder.path, 'out')).text()
  return { exitCode, shown: terminal.shown, stdout, writesBefore, writes }
}

test('on a terminal, it asks before the first write, and goes on after Yes', async () => {
  const { exitCode, shown, stdout, writesBefore, writes } = await conformOnTerminal('Yes\n', '--json')
  expect(shown).toMatch(/^This adds up to 30 animals, .*\r\nContinue\? \[y\/N\] Yes\r\n$/)
  expect({ exitCode, writesBefore }).toEqual({ exitCode: 0, writesBefore: 0 })
  expect(writes).toBeGreaterThan(20)
  expect(JSON.parse(stdout).summary.failed).toBe(0)
})

test('after n it writes nothing, and ends with exit code 1', async () => {
  const { exitCode, shown, stdout, writes } = await conformOnTerminal('n\n')
  expect({ exitCode, stdout, writes }).toEqual({ exitCode: 1, stdout: '', writes: 0 })
  expect(shown).toEndWith('\r\npetstore: Nothing was added: answer y, use --yes, or check with --read-only\r\n')
})
