import { expect, setDefaultTimeout, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { temporaryFolder } from '../support/folder.ts'
import { petstore, projectFolder, run, testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

/** `line` is what one would type. None of these lines touches a file. */
function typed(line: string) {
  return petstore(line.split(' ').slice(1), { cwd: tmpdir() })
}

test.each([
  ['petstore', ['serve', 'keys', '--help', '--version', 'Examples:']],
  ['petstore serve', ['--port', '[PORT]', '--host', '[HOST]', '--database-url', '[DATABASE_URL]']],
  ['petstore serve', ['--api-key', '[PETSTORE_API_KEY]', '--public-url', '[PETSTORE_PUBLIC_URL]']],
  ['petstore serve', ['--staging-url', '[PETSTORE_STAGING_URL]']],
  ['petstore keys', ['create', 'list', 'revoke']],
  [
    'petstore keys create',
    ['--name', '--expires', '--permission', '--read-only', '--database-url', '[DATABASE_URL]'],
  ],
  ['petstore keys list', ['--json', '--database-url', '[DATABASE_URL]']],
  ['petstore export', ['[file]', '--database-url', '[DATABASE_URL]', 'Examples:']],
  ['petstore import', ['<file>', '--keep-ids', '--database-url', '[DATABASE_URL]', '503', 'Examples:']],
  ['petstore keys revoke', ['<which>', '--database-url', '[DATABASE_URL]']],
])('%s --help names %p', async (command, named) => {
  const { exitCode, stdout, stderr } = await typed(`${command} --help`)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toStartWith(`Usage: ${command} `)
  for (const text of named) expect(stdout).toContain(text)
})

test('petstore --version prints the version of the package', async () => {
  const ended = await typed('petstore --version')
  expect(ended).toEqual({ exitCode: 0, stdout: `${manifest.version}\n`, stderr: '' })
})

test.each(['petstore', 'petstore keys'])('%s without a command shows its help on stderr', async line => {
  const { exitCode, stdout, stderr } = await typed(line)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toStartWith(`Usage: ${line} `)
  expect(stderr).toContain('Commands:')
})

test.each([
  ['petstore serve --prot 1', "unknown option '--prot'", '--port'],
  ['petstore serve --petstore-public-ulr x', 'unknown option', '--public-url'],
  ['petstore keys create --name till --expire 1d', "unknown option '--expire'", '--expires'],
  ['petstore keys list --jsno', "unknown option '--jsno'", '--json'],
  ['petstore sevre', "unknown command 'sevre'", 'serve'],
  ['petstore keys lsit', "unknown command 'lsit'", 'list'],
])('%s is refused, and the near one suggested', async (line, problem, suggestion) => {
  const { exitCode, stdout, stderr } = await typed(line)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toContain(problem)
  expect(stderr).toContain(`(Did you mean ${suggestion}?)`)
})

test.each([
  'petstore bogus',
  'petstore serve extra',
  'petstore serve --bogus',
  'petstore serve --port',
  'petstore keys list --port 1',
  'petstore keys revoke',
])('%s is misuse, said in one line', async line => {
  const { exitCode, stdout, stderr } = await typed(line)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toMatch(/^.+\n$/)
})

test.each(['petstore export ', 'petstore import ', 'petstore backup '])(
  '%s"" is misuse, said in one line',
  async line => {
    const { exitCode, stdout, stderr } = await typed(line)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^petstore: .*Expected the name of a file\.\n$/)
  },
)

test('whoever reads late still reads all of the help', async () => {
  const program = join(projectFolder, 'bin/petstore')
  // The pipe is full before the help comes.
  const command = `(head -c 65536 /dev/zero; "${program}" --help) | (sleep 2.5; tr -d '\\0')`
  const { stdout } = await run(['sh', '-c', command], { cwd: tmpdir() })
  expect(stdout).toBe((await typed('petstore --help')).stdout)
})

test('whoever closes the pipe has read enough, and sees no complaint', async () => {
  for (const args of ['--help', 'keys list --json']) {
    const command = `"${join(projectFolder, 'bin/petstore')}" ${args} | true`
    using folder = temporaryFolder()
    await petstore(['keys', 'create', '--name', 'till'], { cwd: folder.path })
    const { stderr } = await run(['sh', '-c', command], { cwd: folder.path })
    expect(stderr).toBe('')
  }
})
