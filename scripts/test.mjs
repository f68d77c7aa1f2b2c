// `npm test`: the checks and every test, at once; the tests over HTTP run on both stores.
// `npm test -- FILE…` runs the checks and these files. `npm test -- --update-timings` also records how long each file takes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const flag = '--update-timings'
const files = process.argv.slice(2).filter(argument => argument !== flag)
const isWhole = files.length === 0
const overHttp = ['./test/http', './test/conform/ours.test.ts', './test/client/client.test.ts']
// Many tests wait more than they compute, so more files than cores run at once.
const workers = availableParallelism() + 2

// Each file that is finished writes its name to the terminal: the output of Bun comes at the end.
const progress = process.stdout.isTTY ? { PETSTORE_TEST_TERMINAL: '/dev/tty' } : {}

console.log('Running the checks and the tests; failures are shown at the end…')
const startedMs = Date.now()
/** The reports of the runs, and a folder for each run with the output of the programs that its tests start. */
const folder = mkdtempSync(join(tmpdir(), 'petstore-report-'))
const linesShown = 60
const shared = await startShared()
try {
  const checks = start('npm', ['run', '--silent', 'check'])
  const updating = process.argv.includes(flag) ? [flag] : []
  const tests = startTests('tests', workers, [...(isWhole ? ['./src', './test'] : files), ...updating])
  const onPostgres =
    isWhole && shared.env['PETSTORE_TEST_POSTGRES_URL']
      ? startTests('postgres', 1, overHttp, { PETSTORE_TEST_STORE: 'postgres' })
      : undefined
  const failed = []
  for (const [title, run] of [
    ['The tests', tests],
    ['The tests over HTTP on PostgreSQL', onPostgres],
    ['npm run check', checks],
  ]) {
    if (!run) continue
    const { status, output } = await run
    console.log(`\n${title}:\n${output.trim() || 'no problems'}`)
    if (status !== 0) failed.push(`${title}: exit code ${status}`)
  }
  summarize(failed)
} finally {
  shared.stop()
  rmSync(folder, { recursive: true })
}

/** Starts the PostgreSQL server that the test files share, and gives the variables by which they find it. */
async function startShared() {
  const child = spawn('bun', ['--no-env-file', './test/support/shared.ts'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, PETSTORE_TEST_OUTPUT: join(folder, 'shared') },
  })
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'close')])
  if (typeof line !== 'string') {
    console.error('petstore: the tests cannot start: see above')
    process.exit(1)
  }
  return { env: JSON.parse(line), stop: () => child.stdin.end() }
}

function startTests(name, parallel, args, env = {}) {
  const flags = [`--parallel=${parallel}`, '--only-failures', '--timings=./test/timings.json']
  const report = ['--reporter=junit', `--reporter-outfile=${join(folder, `${name}.xml`)}`]
  const output = { PETSTORE_TEST_OUTPUT: join(folder, name) }
  return start('bun', ['--no-env-file', 'test', ...flags, ...report, ...args], { ...env, ...output })
}

/** Collects the output, because several programs run at once. */
async function start(command, args, env = {}) {
  const stdio = ['ignore', 'pipe', 'pipe']
  const child = spawn(command, args, { stdio, env: { ...process.env, ...progress, ...shared.env, ...env } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8')
    stream.on('data', text => {
      output += text
    })
  }
  const [status] = await once(child, 'close')
  return { status, output }
}

/** Prints the ends of the outputs of the programs that a test file started in this run. */
function showOutputs(name, file) {
  const outputs = join(folder, name, file)
  for (const program of existsSync(outputs) ? readdirSync(outputs).sort() : []) {
    const lines = readFileSync(join(outputs, program), 'utf8').trimEnd().split('\n')
    const shown = lines.slice(-linesShown).map(line => `  ${line.slice(0, 1_000)}`)
    console.log(`\nThe output of ${file}, ${program}:\n${shown.join('\n')}`)
  }
}

/** Prints every failure again, and the counts in the last line. */
function summarize(failed) {
  const counts = { tests: 0, failures: 0, skipped: 0 }
  for (const name of ['tests', 'postgres']) {
    const report = join(folder, `${name}.xml`)
    const text = existsSync(report) ? readFileSync(report, 'utf8') : ''
    const [head = ''] = /<testsuites [^>]*>/.exec(text) ?? []
    for (const count of Object.keys(counts)) {
      counts[count] += Number(new RegExp(` ${count}="(\\d+)"`).exec(head)?.[1] ?? 0)
    }
    const tests = failedIn(text, name === 'postgres' ? 'PETSTORE_TEST_STORE=postgres ' : '')
    for (const file of new Set(tests.map(test => test.file))) showOutputs(name, file)
    failed.push(...tests.map(test => test.line))
  }
  const { tests, failures, skipped } = counts
  if (failed.length > 0) console.log(`\nFailed:\n  ${failed.join('\n  ')}`)
  console.log(`\nAfter ${Math.round((Date.now() - startedMs) / 1_000)} s:`)
  console.log(`${tests - failures - skipped} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  process.exitCode = failed.length === 0 ? 0 : 1
}

/** Each failed test in a JUnit report, with the command that runs it alone. */
function failedIn(report, mode) {
  const cases = report.matchAll(/<testcase name="([^"]*)" classname="([^"]*)"[^>]*? file="([^"]*)"[^>]*>\s*<failure/g)
  const ci = process.env.CI === 'true' ? 'CI=true ' : ''
  return [...cases].map(found => {
    const [, name, group, file] = found.map(unescaped)
    const pattern = `${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`.replaceAll("'", "'\\''")
    const alone = `${ci}${mode}npx bun --no-env-file test ./${file} -t '${pattern}'`
    return { file, line: `${file}: ${group ? `${group} > ` : ''}${name}\n    alone: ${alone}` }
  })
}

function unescaped(text) {
  const characters = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }
  return text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) => characters[name])
}
