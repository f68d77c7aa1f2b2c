// `npm test`: the checks and every test. `npm test -- FILE…` runs the checks and these files.
// Other arguments are for `bun test`: `npm test -- --update-timings` also records how long each file takes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'

const given = process.argv.slice(2)
const files = given.every(argument => argument.startsWith('-')) ? ['./src', './test'] : []
// Many tests wait more than they compute, so more files than cores run at once.
const flags = [`--parallel=${availableParallelism() + 2}`, '--only-failures', '--timings=./test/timings.json']
const startedMs = Date.now()
/** The last lines of a program that a failed test started. */
const linesShown = 60
const counts = { pass: 0, fail: 0, skip: 0, error: 0 }
const failed = new Map()
let file = ''

rmSync('test/output', { recursive: true, force: true })
// Starts the PostgreSQL server that the test files share, and prints the variables by which they find it.
const shared = spawn('bun', ['--no-env-file', './test/support/shared.ts'], { stdio: ['pipe', 'pipe', 'inherit'] })
const [variables] = await Promise.race([once(createInterface(shared.stdout), 'line'), once(shared, 'close')])
if (typeof variables !== 'string') process.exit(1)
const problems = []
const checks = run('npm', ['run', '--silent', 'check'], line => problems.push(line))
const testStatus = await run('bun', ['--no-env-file', 'test', ...flags, ...files, ...given], readReport)
const checkStatus = await checks
shared.stdin.end()

console.log(['\nnpm run check:', ...(problems.length > 0 ? problems : ['no problems'])].join('\n'))
for (const [file, names] of failed) showFailed(file, names)
console.log(`\nAfter ${Math.round((Date.now() - startedMs) / 1_000)} s:`)
console.log(`${counts.pass} passed, ${counts.fail + counts.error} failed, ${counts.skip} skipped`)
process.exitCode = testStatus === 0 && checkStatus === 0 ? 0 : 1

async function run(command, args, read) {
  const env = { ...process.env, ...JSON.parse(variables) }
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', read)
  const [status] = await once(child, 'close')
  return status
}

/** Prints what Bun prints of each file as soon as it prints it, and remembers what failed. */
function readReport(line) {
  const [, header] = /^(\S+\.test\.ts):$/.exec(line) ?? []
  const [, failure] = /^\(fail\) (.*?)( \[[\d.]+m?s\])?$/.exec(line) ?? []
  const [, count, kind] = /^ *(\d+) (pass|fail|skip|error)s?$/.exec(line) ?? []
  if (kind) counts[kind] = Number(count)
  if (failure) failed.set(file, [...(failed.get(file) ?? []), failure])
  if (header) file = header
  else if (line.startsWith('finished after ')) console.log(`${file} ${line}`)
  else if (line !== '') console.log(line)
}

/** The commands that run failed tests alone, and the ends of the outputs of the programs that their file started. */
function showFailed(file, names) {
  for (const name of names) {
    const pattern = `${name
      .split(' > ')
      .at(-1)
      .replace(/[\\^$.*+?()[\]{}|']/g, '.')}$`
    console.log(`\nFailed: ${file}: ${name}\n  alone: npx bun --no-env-file test ./${file} -t '${pattern}'`)
  }
  const folder = `test/output/${file}`
  for (const program of existsSync(folder) ? readdirSync(folder).sort() : []) {
    const lines = readFileSync(`${folder}/${program}`, 'utf8').trimEnd().split('\n').slice(-linesShown)
    console.log([`\nThe output of ${file}, ${program}:`, ...lines.map(line => `  ${line.slice(0, 1_000)}`)].join('\n'))
  }
}
