// `npm test`: the checks, then every test, then those over HTTP once more on PostgreSQL; in the end one line with the counts.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = mkdtempSync(join(tmpdir(), 'petstore-report-'))
const given = process.argv.slice(2)
try {
  const checked = run('npm', ['run', '--silent', 'check'])
  const tested = given.length > 0 ? test(given) : test(['./src', './test'])
  const testedAgain = given.length > 0 || testOnPostgres()
  console.log(checked ? '' : '\nnpm run check failed: see above')
  console.log(summary())
  process.exitCode = checked && tested && testedAgain ? 0 : 1
} finally {
  rmSync(folder, { recursive: true })
}

function run(command, args, env = {}) {
  return spawnSync(command, args, { stdio: 'inherit', env: { ...process.env, ...env } }).status === 0
}

function test(paths, env) {
  const report = join(folder, `${readdirSync(folder).length}.xml`)
  return run(
    'bun',
    ['--no-env-file', 'test', '--reporter=junit', `--reporter-outfile=${report}`, ...paths],
    env,
  )
}

/** Where PostgreSQL cannot be had this is left out, but never in CI. */
function testOnPostgres() {
  const obstacle = process.env['PETSTORE_TEST_POSTGRES_URL'] ? '' : postgresObstacle()
  if (obstacle) {
    const inCi = process.env['CI'] === 'true'
    console.log(`\n${inCi ? 'Failed' : 'Skipped'}: the tests over HTTP on PostgreSQL: ${obstacle}`)
    return !inCi
  }
  console.log('\nThe tests over HTTP once more, on PostgreSQL:')
  const overHttp = ['./test/http', './test/conform/ours.test.ts', './test/client/client.test.ts']
  return test(overHttp, { PETSTORE_TEST_STORE: 'postgres' })
}

function postgresObstacle() {
  const script = `
    const { postgresPrograms, removeCopiedPrograms } = await import('./test/support/postgres-program.ts')
    const found = postgresPrograms()
    removeCopiedPrograms()
    if (found instanceof Error) process.stdout.write(found.message)`
  const { status, stdout, stderr } = spawnSync('bun', ['--no-env-file', '-e', script], { encoding: 'utf8' })
  return status === 0 ? stdout : stderr
}

function summary() {
  const [passed, failed, skipped] = readdirSync(folder)
    .map(name => countsIn(readFileSync(join(folder, name), 'utf8')))
    .reduce((sums, counts) => sums.map((sum, index) => sum + counts[index]), [0, 0, 0])
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

function countsIn(report) {
  const [head = ''] = /<testsuites [^>]*>/.exec(report) ?? []
  const count = name => Number(new RegExp(` ${name}="(\\d+)"`).exec(head)?.[1] ?? 0)
  const failed = count('failures')
  const skipped = count('skipped')
  return [count('tests') - failed - skipped, failed, skipped]
}
