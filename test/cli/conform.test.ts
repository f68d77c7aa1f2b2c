import { expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { contractChecks } from '../../src/conform/contract.ts'
import { answering, changing, type Defect, startWrongServer } from '../conform/wrong-server.ts'
import { petstore, program, startServer } from '../support/process.ts'
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
  expect((await conformWrong([badName], '--json')).stdout).not.toContain('\u202e')
})

test('--read-only sends only GET and skips the checks that write, and --json prints one document', async () => {
  const plain = await conformWrong([], '--read-only')
  expect(plain).toMatchObject({ exitCode: 0, stderr: '' })
  expect(plain.stdout).toMatch(/^- POST \/pets .+ \(skipped: .+\)$/m)

  using server = startWrongServer(badStatus)
  const args = ['conform', server.url, '--key', server.key, '--json', '--read-only']
  const { exitCode, stdout } = await petstore(args, { cwd: tmpdir() })
  const { checks, ...report } = JSON.parse(stdout)
  const count = (wanted: string) => checks.filter(({ outcome }: { outcome: string }) => outcome === wanted).length
  const summary = { passed: count('passed'), failed: 1, skipped: count('skipped') }
  expect(report).toEqual({ url: server.url, readOnly: true, summary })
  expect(checks).toContainEqual({ name: expect.any(String), where: expect.any(String), outcome: 'passed' })
  expect([exitCode, checks.length, count('failed')]).toEqual([1, contractChecks.length, 1])
  expect(new Set(server.methods)).toEqual(new Set(['GET']))
})

test('the output does not contain the key, even if the server echoes it', async () => {
  const echo = changing((reply, { headers }) => ({
    status: reply.status === 200 ? 200 : 500,
    body: `${'x'.repeat(240)}${headers.get('authorization')}`,
  }))
  const { exitCode, stdout, stderr } = await conformWrong([echo], '--json')
  expect(exitCode).toBe(1)
  expect(stdout).toContain('[key]')
  expect(stdout + stderr).not.toContain('the-only')
})

test('on a terminal, it asks before the first write, and after n it writes nothing', async () => {
  using server = startWrongServer()
  const command = [program, 'conform', server.url]
  await using terminal = spawnOnTerminal(command, { cwd: tmpdir(), env: { PETSTORE_API_KEY: server.key } })
  await terminal.asks()
  expect(terminal.shown).toMatch(/^This adds up to 30 animals, .*\r\nContinue\? \[y\/N\] $/)
  terminal.type('n\n')
  expect(await terminal.exited()).toBe(1)
  expect(terminal.shown).toContain('\r\npetstore: Nothing was added: ')
  expect(new Set(server.methods)).toEqual(new Set(['GET']))
})
