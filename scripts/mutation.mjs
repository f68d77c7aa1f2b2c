// `npm run test:mutation -- TARGET [--sample N] [--seed S] [--workers N] [FILE[:LINE]…]`: changes the source in small ways, and
// lists the changes that no test notices. It takes minutes to hours, so it is not part of `npm test`.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

/** Puts every change into the code at once; a variable selects one. Downloaded on demand. */
const instrumenter = '@stryker-mutator/instrumenter'
const instrumenterVersion = '9.6.1'
const activeVariable = '__STRYKER_ACTIVE_MUTANT__'

/** Added to the code: if the variable names a file instead of a change, writes the changes that are reached to it. */
const recorder = `{
  const file = process.env.${activeVariable}
  const set = (seen, id) => {
    if (!seen[id]) process.getBuiltinModule('node:fs').appendFileSync(file, id + '\\n')
    return (seen[id] = true)
  }
  if (file?.includes('/')) globalThis.__stryker__ ??= { mutantCoverage: { static: new Proxy({}, { set }), perTest: {} } }
}`

/** Single tests to try before files that take longer than this. */
const findersMax = 6
const quickMs = 3_000

/** The files to change; the test files that judge a change; the score to reach, in percent. */
const targets = {
  root: { mutate: /^src\/[^/]+$/, tests: /^src\/[^/]+$/, goal: 96 },
  // Nearly all of openapi.ts is text for people.
  http: {
    mutate: /^src\/http\/(?!openapi\.ts)/,
    tests: /^(src|test)\/http\/|^test\/(cli\/serve|faults\/stopping)\./,
    goal: 93,
  },
  sqlite: {
    mutate: /^src\/store\/sqlite\//,
    tests: /^(src|test)\/store\/sqlite|^test\/(faults\/(damage|writer|disk|restore)|cli\/(backup|restore|transfer))\./,
    goal: 85,
  },
  postgres: {
    mutate: /^src\/store\/postgres\//,
    tests: /^(src|test)\/store\/postgres|^test\/(faults\/postgres-|cli\/postgres\.)/,
    // Not measured yet.
    goal: 0,
  },
  client: { mutate: /^src\/client\//, tests: /^src\/client\/|^test\/client\/client\./, goal: 95 },
  cli: {
    mutate: /^src\/cli\//,
    tests: /^src\/cli\/|^test\/cli\/(?!executable|nginx|package)|^test\/faults\/stopping\./,
    goal: 83,
  },
  conform: { mutate: /^src\/conform\//, tests: /^test\/conform\/|^test\/cli\/conform\./, goal: 91 },
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    workers: { type: 'string', default: String(availableParallelism()) },
  },
})
const [name = '', ...places] = positionals
if (!Object.hasOwn(targets, name)) {
  console.error(`Expected a target: ${Object.keys(targets).join(', ')}`)
  process.exit(2)
}
for (const [option, value] of Object.entries(values)) {
  if (option === 'seed' || /^[1-9]\d*$/.test(value)) continue
  console.error(`--${option} is "${value}": expected a positive integer`)
  process.exit(2)
}
const { mutate, tests, goal } = targets[name]

// Inside the project, so that node_modules is found; ignored by git.
const copy = `coverage/mutation-${name}`
const temporary = fs.mkdtempSync(join(tmpdir(), 'petstore-mutation-'))
// PostgreSQL's user reads folders in it.
fs.chmodSync(temporary, 0o755)
const shared = spawn('bun', ['--no-env-file', './test/support/shared.ts'], { stdio: ['pipe', 'pipe', 'inherit'] })
try {
  const [line] = await Promise.race([once(createInterface(shared.stdout), 'line'), once(shared, 'close')])
  if (typeof line !== 'string') throw new Error('The PostgreSQL server for the tests cannot start: see above')
  await judge(JSON.parse(line))
} finally {
  shared.stdin.end()
  fs.rmSync(temporary, { recursive: true })
}

async function judge(sharedEnv) {
  const all = await instrument()
  const chosen = choose(all)
  if (chosen.length === 0) throw new Error('No change is chosen: check --sample and the files')
  const seeded = values.sample ? `, a sample with seed ${values.seed}` : ''
  console.log(`${name}: ${chosen.length} of ${all.length} changes${seeded}`)

  const suites = filesIn(['src', 'test']).filter(file => tests.test(file) && file.endsWith('.test.ts'))
  const timed = []
  await eachAtOnce(suites, async file => timed.push(await measure(file, sharedEnv)))
  console.log(`Without a change, ${timed.length} test files pass; now each change…`)

  const counts = { found: 0, 'timed out': 0, survived: 0 }
  let done = 0
  await eachAtOnce(chosen, async change => {
    const outcome = await tryChange(change, timed, sharedEnv)
    counts[outcome]++
    if (++done % 20 === 0) console.log(`${done} of ${chosen.length}: ${counts.survived} survived`)
    if (outcome === 'survived') console.log(described(change, timed))
  })
  const score = 100 * (1 - counts.survived / chosen.length)
  console.log(`${name}: ${chosen.length} of ${all.length} changes${seeded}:`)
  console.log(`${counts.found} found, ${counts['timed out']} timed out, ${counts.survived} survived`)
  console.log(`Score ${score.toFixed(1)}%, goal ${goal}%`)
  // A sample may miss the goal by chance.
  if (chosen.length === all.length && score < goal) process.exitCode = 1
}

/** Copies the project, with all changes in the code. */
async function instrument() {
  const packages = 'coverage/stryker'
  const install = ['install', '--no-audit', '--no-fund', '--loglevel=error', `--prefix=${packages}`]
  const { status } = spawnSync('npm', [...install, `${instrumenter}@${instrumenterVersion}`], { stdio: 'inherit' })
  if (status !== 0) throw new Error(`npm cannot install ${instrumenter}`)
  const { Instrumenter } = await import(
    pathToFileURL(join(packages, 'node_modules', instrumenter, 'dist/src/index.js')).href
  )

  fs.rmSync(copy, { recursive: true, force: true })
  const left = ['.git', 'bench', 'coverage', 'data', 'dist', 'node_modules']
  for (const entry of fs.readdirSync('.').filter(entry => !left.includes(entry))) {
    fs.cpSync(entry, join(copy, entry), { recursive: true, verbatimSymlinks: true })
  }
  fs.symlinkSync('../../node_modules', join(copy, 'node_modules'))

  const sources = filesIn(['src']).filter(file => mutate.test(file) && /(?<!\.test)\.ts$/.test(file))
  const logger = { debug() {}, info() {}, warn: console.warn, isDebugEnabled: () => false }
  const given = sources.map(file => ({ name: file, mutate: true, content: fs.readFileSync(file, 'utf8') }))
  const options = { plugins: null, excludedMutations: [], ignorers: [] }
  const { files, mutants } = await new Instrumenter(logger).instrument(given, options)
  for (const { name, content } of files) fs.writeFileSync(join(copy, name), `${recorder}\n${content}`)
  return mutants.map(({ id, fileName: file, location: { start, end }, replacement }) => {
    const lines = fs
      .readFileSync(file, 'utf8')
      .split('\n')
      .slice(start.line, end.line + 1)
    // The end first: both may be in the same line.
    lines.push(lines.pop().slice(0, end.column))
    lines.unshift(lines.shift().slice(start.column))
    return { id, file, line: start.line + 1, original: lines.join('\n'), replacement }
  })
}

function choose(all) {
  const chosen = all.filter(
    ({ file, line }) => places.length === 0 || places.some(place => [file, `${file}:${line}`].includes(place)),
  )
  if (!values.sample) return chosen
  const random = ({ id }) => createHash('sha256').update(`${values.seed} ${id}`).digest('hex')
  return chosen.sort((a, b) => (random(a) < random(b) ? -1 : 1)).slice(0, Number(values.sample))
}

/** Runs a test file without a change: how long it takes, and the changes that it reaches. */
async function measure(file, sharedEnv) {
  const record = join(temporary, file.replaceAll('/', '-'))
  fs.writeFileSync(record, '')
  const startedMs = Date.now()
  const { status, output } = await runTests(file, { ...sharedEnv, [activeVariable]: record }, 600_000)
  if (status !== 0) throw new Error(`${file} fails without a change:\n${output.slice(-2_000)}`)
  return { file, ms: Date.now() - startedMs, reached: new Set(fs.readFileSync(record, 'utf8').split('\n')), found: {} }
}

/** Runs the test files that reach a change until one fails, quick ones first. */
async function tryChange({ id, file }, timed, sharedEnv) {
  const judges = timed.filter(({ reached }) => reached.has(id)).sort((a, b) => a.ms - b.ms)
  const slow = judges.filter(({ ms }) => ms > quickMs)
  // The single tests that found most changes of this source file.
  const finders = slow
    .flatMap(judge => Object.entries(judge.found[file] ?? {}).map(([test, count]) => ({ judge, test, count })))
    .sort((a, b) => b.count - a.count)
    .slice(0, findersMax)
  const quick = judges.filter(({ ms }) => ms <= quickMs)
  const whole = judge => ({ judge })
  for (const { judge, test } of [...quick.map(whole), ...finders, ...slow.map(whole)]) {
    // A change may cause an endless loop; a busy machine must not look like one.
    const limitMs = 15_000 + 4 * judge.ms
    const { status, output } = await runTests(judge.file, { ...sharedEnv, [activeVariable]: id }, limitMs, test)
    if (status === 0 || output.includes('matched 0 tests')) continue
    const [, failed] = /^\(fail\) (.+?)(?: \[[\d.]+m?s\])?$/m.exec(output) ?? []
    judge.found[file] ??= {}
    if (failed) judge.found[file][failed] = (judge.found[file][failed] ?? 0) + 1
    return status === null ? 'timed out' : 'found'
  }
  return 'survived'
}

/** Runs a test file, or one test of it. The status is null after the time limit. */
async function runTests(file, env, limitMs, test) {
  const folder = fs.mkdtempSync(join(temporary, 'run-'))
  fs.chmodSync(folder, 0o755)
  const only = test ? ['-t', `^${test.replace(/[^\w >]/g, '.').replaceAll(' > ', ' (> )?')}$`] : []
  const child = spawn('bun', ['--no-env-file', 'test', '--bail', ...only, `./${file}`], {
    cwd: copy,
    stdio: ['ignore', 'pipe', 'pipe'],
    // Without CI, tests that need a missing program are skipped.
    env: { ...process.env, CI: '', TMPDIR: folder, ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', data => (output += data))
  const timer = setTimeout(() => child.kill('SIGKILL'), limitMs)
  const closed = once(child, 'close')
  await once(child, 'exit')
  clearTimeout(timer)
  endAllIn(folder)
  const [status] = await closed
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  return { status, output }
}

/** Ends the programs and the file systems that a test left: each is in a folder of its own. */
function endAllIn(folder) {
  if (!fs.existsSync('/proc')) return
  for (const line of fs.readFileSync('/proc/mounts', 'utf8').split('\n')) {
    const [, place = ''] = line.split(' ')
    if (place.startsWith(folder)) spawnSync('umount', ['--lazy', place])
  }
  for (const pid of fs.readdirSync('/proc').filter(Number)) {
    try {
      if (fs.readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)) process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended, or belongs to another user.
    }
  }
}

function described({ id, file, line, original, replacement }, timed) {
  const judges = timed.filter(({ reached }) => reached.has(id)).map(({ file }) => basename(file, '.test.ts'))
  return `${file}:${line} survived ${judges.join(', ') || 'because no test reaches it'}\n- ${original}\n+ ${replacement}`
}

function filesIn(folders) {
  return folders.flatMap(folder => fs.readdirSync(folder, { recursive: true }).map(file => `${folder}/${file}`)).sort()
}

async function eachAtOnce(items, action) {
  const queue = [...items]
  const worker = async () => {
    for (let item = queue.shift(); item; item = queue.shift()) await action(item)
  }
  await Promise.all(Array.from({ length: Number(values.workers) }, worker))
}
