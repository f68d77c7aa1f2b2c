// `npm test`: the checks, then every test, then one closing line with the counts.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = mkdtempSync(join(tmpdir(), 'petstore-report-'))
const report = join(folder, 'junit.xml')
const given = process.argv.slice(2)
try {
  const checked = run('npm', ['run', '--silent', 'check'])
  const tested = run('bun', [
    '--no-env-file',
    'test',
    '--reporter=junit',
    `--reporter-outfile=${report}`,
    ...(given.length > 0 ? given : ['./src', './test']),
  ])
  console.log(checked ? '' : '\nnpm run check failed: see above')
  console.log(summary())
  process.exitCode = checked && tested ? 0 : 1
} finally {
  rmSync(folder, { recursive: true })
}

function run(command, args) {
  return spawnSync(command, args, { stdio: 'inherit' }).status === 0
}

function summary() {
  const [head = ''] = /<testsuites [^>]*>/.exec(readFileSync(report, 'utf8')) ?? []
  const count = name => Number(new RegExp(` ${name}="(\\d+)"`).exec(head)?.[1] ?? 0)
  const failed = count('failures')
  const skipped = count('skipped')
  return `${count('tests') - failed - skipped} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
