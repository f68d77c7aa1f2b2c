import { expect, test } from 'bun:test'
import manifest from '../../package.json' with { type: 'json' }
import { openApiDocument } from '../http/openapi.ts'
import { main } from './main.ts'
import type { Io } from './output.ts'

/** Runs the program in this process, as it would be called from PATH. */
async function run(args: readonly string[], env: Io['env'] = {}, program = 'petstore') {
  const printed = { stdout: '', stderr: '' }
  const exitCode = await main(args, {
    env,
    program,
    isTerminal: false,
    isStyled: false,
    async out(text) {
      printed.stdout += text
    },
    err(text) {
      printed.stderr += text
    },
  })
  return { exitCode, ...printed }
}

const commands = [
  ...['', 'serve', 'demo', 'keys', 'keys create', 'keys list', 'keys revoke', 'pets', 'pets list', 'pets add'],
  ...['pets get', 'pets update', 'pets remove', 'backup', 'restore', 'export', 'import', 'openapi', 'conform'],
  ...['health', 'version'],
]

test.each(commands)('the help of "%s" has a summary, a usage line and examples', async name => {
  const words = name.split(' ').filter(Boolean)
  const { exitCode, stdout, stderr } = await run([...words, '--help'])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toMatch(/^[A-Z].*\.\n\nUsage: /)
  expect(stdout).toContain(`\nUsage: ${['petstore', ...words].join(' ')}`)
  expect(stdout).toMatch(/\nExamples:\n( {2}.*petstore .*\n)+$/)
  const long = await run([...words, '--help'], {}, '/opt/petstore/bin/petstore')
  for (const line of long.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
  const last = words.pop() ?? ''
  for (const line of [`help ${name}`, `--help ${name}`, `${words.join(' ')} help ${last}`, `${name} -h`]) {
    expect((await run(line.split(' ').filter(Boolean))).stdout).toBe(stdout)
  }
})

test('the help of a command lists its flags, what is required, defaults and variables', async () => {
  const { stdout } = await run(['keys', 'create', '--help'])
  for (const text of ['--name, -n <name>', '(required)', '(default: never)', '[DATABASE_URL]'])
    expect(stdout).toContain(text)
})

test.each([[[]], [['keys']]])('%p without a command prints the help on stderr', async args => {
  const { stdout } = await run([...args, '--help'])
  expect(await run(args)).toEqual({ exitCode: 2, stdout: '', stderr: stdout })
})

const keyName = 'expected 1 to 100 characters on one line, not beginning with a dash'
const notUrl = 'is invalid: expected an http or https URL'

test.each<[string, ...problems: string[]]>([
  ['sevre', 'Unknown command sevre: did you mean serve?'],
  ['--port 1', 'Unknown option --port: name a command first; petstore --help lists the commands'],
  ['conform http://127.0.0.1:1/v1', 'Cannot ask without a terminal: use --yes, or --read-only to add nothing'],
  ['backup copy.db --database-url postgres://me:secret@db/pets', 'Cannot back up PostgreSQL: use pg_dump, or'],
  ['restore copy.db --database-url postgres://me:secret@db/pets', 'Cannot restore PostgreSQL: stop all instances'],
  ['keys create --expires 0d', `--name is missing: ${keyName}`, '--expires is "0d": expected a time'],
  [`keys create --name ${'x'.repeat(101)}`, '--name is "xxx'],
  ['pets list --all --limit 3', '--all contradicts --limit: remove one of them'],
  ['pets add Rex --category 1.5 --status x', '--category is "1.5"', '--status is "x"'],
  ['pets list --url ftp://me:secret@pets --limit 0', '--limit is "0"', `--url ${notUrl}`],
  ['pets update 4 --if-status sold', 'Nothing to change: expected --name, --category, --status or --no-status'],
  ['pets remove --yes', '<id>... is missing: expected the ids of the animals'],
])('petstore %s: exit code 2, and one line for each problem', async (line, ...problems) => {
  const env = { PETSTORE_API_KEY: 'secret-of-17-chars', PETSTORE_URL: 'http://127.0.0.1:1' }
  const { exitCode, stdout, stderr } = await run(line.split(' '), env)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr.split('\n')).toEqual([...problems.map(problem => expect.stringContaining(problem)), ''])
  for (const line of stderr.trimEnd().split('\n')) expect(line).toStartWith('petstore: ')
  expect(stderr).not.toContain('secret')
})

test.each([
  ...['', '--api-key=', 'postgres://me:', '-k', 'keys -k', 'keys ', 'import ', 'serve --port ', 'serve --host='],
  ...['pets get ', 'conform '],
])('petstore %sKEY does not show the key', async start => {
  const key = `pets_${'x'.repeat(36)}`
  const { exitCode, stderr } = await run(`${start}${key}/`.split(' '), { PETSTORE_API_KEY: 'a-key-of-20-characters' })
  expect(exitCode).toBeGreaterThan(0)
  expect(stderr).not.toContain(key.slice(0, 20))
})

test.each(['--version', '-v', 'version'])('petstore %s prints the version', async line => {
  const stdout = `petstore ${manifest.version} (source, ${process.platform} ${process.arch}, Bun ${Bun.version})\n`
  expect(await run(line.split(' '))).toEqual({ exitCode: 0, stdout, stderr: '' })
})

test('openapi prints the document; a variable that no command has is reported on stderr', async () => {
  const env = { PETSTORE_PUBLIC_URL: 'https://pets.example.com', PETSTORE_ULR: 'x' }
  const stderr = 'petstore: Unknown variable PETSTORE_ULR: did you mean PETSTORE_URL?\n'
  const { stdout, ...rest } = await run(['openapi'], env)
  expect(rest).toEqual({ exitCode: 0, stderr })
  const server = { url: 'https://pets.example.com/v1', description: 'The pet store' }
  expect(JSON.parse(stdout)).toEqual(openApiDocument([server]))
})

test('messages name the program as it was called', async () => {
  const spaced = "'/my petstore clone/bin/my-petstore'"
  for (const [args, advice] of [
    [['bogus'], `${spaced} --help lists the commands`],
    [['backup', 'pets.db'], `use pg_dump, or ${spaced} export for the animals alone`],
    [['pets', 'list'], `${spaced} keys create --name NAME creates one`],
  ] as const) {
    const { stderr } = await run(args, { DATABASE_URL: 'postgres://db/pets' }, spaced)
    expect(stderr).toEndWith(`${advice}\n`)
  }
})
