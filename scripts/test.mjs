// `npm test`: the checks and every test, at once. The tests over HTTP run on both stores.
// `npm test -- FILE…` tests only these files. `npm test -- --update-timings` also records how long each file takes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const given = process.argv.slice(2).filter(argument => argument !== '--update-timings')
const timings = process.argv.includes('--update-timings') ? ['--update-timings'] : []
const paths = given.length > 0 ? given : ['./src', './test']
const onPostgres = ['./test/http', './test/conform/ours.test.ts', './test/client/client.test.ts']
// Many tests wait more than they compute, so more files than cores run at once.
const workers = availableParallelism() + 1

const startedMs = Date.now()
const folder = mkdtempSync(join(tmpdir(), 'petstore-report-'))
const shared = await startShared()
try {
  const runs = [
    { name: 'npm run check', ...start('npm', ['run', '--silent', 'check']) },
    { name: 'npm test', ...startTests('tests.xml', workers, [...paths, ...timings]) },
  ]
  if (given.length === 0 && shared.env['PETSTORE_TEST_POSTGRES_URL']) {
    const env = { PETSTORE_TEST_STORE: 'postgres' }
    runs.push({ name: 'the tests over HTTP on PostgreSQL', ...startTests('postgres.xml', 1, onPostgres, env) })
  }
  const failed = []
  for (const { name, report, ended } of runs) {
    const { status, output } = await ended
    process.stdout.write(`\n${name}:\n${output}`)
    if (status !== 0) failed.push(name)
    if (status !== 0 && report && !existsSync(report)) failed.push(`${name}: no report was written`)
  }
  summarize(runs, failed)
} finally {
  shared.stop()
  rmSync(folder, { recursive: true })
}

/** Starts what the test files share, and gives the variables by which they find it. */
async function startShared() {
  const child = spawn('bun', ['--no-env-file', './test/support/shared.ts'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'close')])
  if (typeof line !== 'string') {
    console.error('petstore: cannot start what the tests share: see above')
    process.exit(1)
  }
  return { env: JSON.parse(line), stop: () => child.stdin.end() }
}

function startTests(name, parallel, args, env = {}) {
  const report = join(folder, name)
  const flags = [`--parallel=${parallel}`, '--only-failures', '--timings=./test/timings.json']
  const reporting = ['--reporter=junit', `--reporter-outfile=${report}`]
  return { report, ...start('bun', ['--no-env-file', 'test', ...flags, ...reporting, ...args], env) }
}

/** The output is collected, because several programs print at once. */
function start(command, args, env = {}) {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...shared.env, ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', bytes => (output += bytes))
  return { ended: once(child, 'close').then(([status]) => ({ status, output })) }
}

function summarize(runs, failed) {
  const sums = { tests: 0, failures: 0, skipped: 0 }
  for (const { report } of runs) {
    const text = report && existsSync(report) ? readFileSync(report, 'utf8') : ''
    const [head = ''] = /<testsuites [^>]*>/.exec(text) ?? []
    for (const name of Object.keys(sums)) {
      sums[name] += Number(new RegExp(` ${name}="(\\d+)"`).exec(head)?.[1] ?? 0)
    }
    failed.push(...failedIn(text))
  }
  const { tests, failures, skipped } = sums
  console.log(failed.length > 0 ? `\nFailed:\n  ${failed.join('\n  ')}` : '')
  const seconds = Math.round((Date.now() - startedMs) / 1_000)
  const skippedText = skipped > 0 ? `, ${skipped} skipped` : ''
  console.log(`${tests - failures - skipped} passed, ${failures} failed${skippedText} (${seconds} s)`)
  process.exitCode = failed.length === 0 ? 0 : 1
}

/** `FILE: describe > test` for each test that failed. */
function failedIn(report) {
  const cases = report.matchAll(/<testcase name="([^"]*)" classname="([^"]*)"[^>]*? file="([^"]*)"[^>]*>\s*<failure/g)
  return [...cases].map(([, name, group, file]) => unescaped(`${file}: ${group ? `${group} > ` : ''}${name}`))
}

function unescaped(text) {
  const characters = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }
  return text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) => characters[name])
}
