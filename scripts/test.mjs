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
/** The numbers at the end of Bun's report, such as `fail`; none if it did not get there. */
let counts = {}
const failedByFile = new Map()
let file = files[0] ?? given.at(-1)

rmSync('test/output', { recursive: true, force: true })
// Starts the PostgreSQL server that the test files share, and prints the variables by which they find it.
const shared = spawn('bun', ['--no-env-file', './test/support/shared.ts'], { stdio: ['pipe', 'pipe', 'inherit'] })
const [variables] = await Promise.race([once(createInterface(shared.stdout), 'line'), once(shared, 'close')])
if (typeof variables !== 'string') process.exit(1)
const problems = []
const checks = run('npm', ['run', '--silent', 'check'], line => problems.push(line))
const tests = await run('bun', ['--no-env-file', 'test', ...flags, ...files, ...given], readReport)
const isGreen = (await checks) === 0 && tests === 0 && counts.fail === 0
shared.stdin.end()

console.log(['\nnpm run check:', ...(problems.length > 0 ? problems : ['no problems'])].join('\n'))
for (const [file, names] of failedByFile) showFailed(file, names)
console.log(`\nAfter ${Math.round((Date.now() - startedMs) / 1_000)} s, bun test ended with ${tests}:`)
console.log(`${counts.pass ?? 0} passed, ${counts.fail || (isGreen ? 0 : 1)} failed, ${counts.skip ?? 0} skipped`)
process.exitCode = isGreen ? 0 : 1

async function run(command, args, read) {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...JSON.parse(variables) },
  })
  for (const name of ['stdout', 'stderr']) createInterface(child[name]).on('line', line => read(line, name))
  const [status, signal] = await once(child, 'close')
  return status ?? signal
}

/** Passes on what Bun prints on stderr and tests on stdout, and remembers what failed. */
function readReport(line, name) {
  const [, header] = /^(\S+\.test\.ts):$/.exec(line) ?? []
  if (line !== '' && !header) console.log(line)
  if (name === 'stdout') return
  file = header ?? file
  const [, count, kind] = /^ *(\d+) (pass|fail|skip|error|expect)/.exec(line) ?? []
  if (kind) counts[kind] = Number(count)
  else if (!line.startsWith('Ran ')) counts = {}
  const [, failure] = /^(?:\(fail\)|✗|#) (.*?)( \[[\d.]+m?s\])?$/.exec(line) ?? []
  if (failure) failedByFile.set(file, [...(failedByFile.get(file) ?? []), failure])
}

/** The commands that run failed tests alone, and the last lines of the programs that their file started. */
function showFailed(file, names) {
  for (const name of names) {
    const pattern = /\)$|^Unhandled/.test(name) ? '' : `${name.replace(/^.* > /, '').replace(/[^\w ]/g, '.')}$`
    console.log(`\nFailed: ${file}: ${name}\n  alone: npx bun --no-env-file test ./${file} -t '${pattern}'`)
  }
  for (const program of existsSync(`test/output/${file}`) ? readdirSync(`test/output/${file}`).sort() : []) {
    const lines = readFileSync(`test/output/${file}/${program}`, 'utf8').trimEnd().split('\n').slice(-60)
    console.log([`\nThe output of ${file}, ${program}:`, ...lines.map(line => `  ${line.slice(0, 1_000)}`)].join('\n'))
  }
}
