import { globSync } from 'node:fs'
import { network, run } from './process.ts'

/** The paths of programs that Debian has as packages; undefined if one is not installed. */
export async function chromium(): Promise<string | undefined> {
  // Chromium without its windows takes a third of the CPU time.
  const shell = 'chromium-headless-shell'
  if (isCi && !installed(shell)) await install(shell)
  const path = installed(shell, 'chromium', 'chromium-browser', 'google-chrome')
  return path ?? skipped(`the browser tests need the Debian package ${shell}`)
}
export const pgbouncer = async () =>
  (await programs('the tests of a connection pooler', { pgbouncer: 'pgbouncer' }))?.pgbouncer
export const nginx = async () => (await programs('the tests of its configurations', { nginx: 'nginx' }))?.nginx

const isCi = process.env['CI'] === 'true'

/** Says why tests are skipped. In CI, that is an error. */
export function skipped(reason: string): undefined {
  if (isCi) throw new Error(reason)
  process.stderr.write(`Skipped: ${reason}\n`)
}

/**
 * The paths of several programs, each named with its package. In CI, root installs missing packages with apt-get, and a
 * program that is still missing is an error. Elsewhere a line on stderr says which tests are skipped.
 */
export async function programs<Name extends string>(tests: string, packages: Readonly<Record<Name, string>>) {
  const names = Object.keys(packages) as Name[]
  const missing = () => [...new Set(names.filter(name => !installed(name)).map(name => packages[name]))]
  if (missing().length > 0 && isCi) await install(missing().join(' '))
  if (missing().length > 0) return skipped(`${tests} need the Debian packages ${missing().join(', ')}`)
  return Object.fromEntries(names.map(name => [name, installed(name)])) as Record<Name, string>
}

function installed(...names: readonly string[]): string | undefined {
  // Debian keeps PostgreSQL's programs out of the PATH, in a folder for each version.
  const servers = globSync('/usr/lib/postgresql/*/bin').sort().reverse()
  const PATH = [process.env['PATH'], '/usr/sbin', ...servers].join(':')
  return names.map(name => Bun.which(name, { PATH })).find(path => path !== null) ?? undefined
}

async function install(packages: string): Promise<void> {
  if (process.getuid?.() !== 0 || !Bun.which('apt-get')) return
  const env = { ...network, DEBIAN_FRONTEND: 'noninteractive' }
  const command = `apt-get update && apt-get install -y -o DPkg::Lock::Timeout=300 ${packages}`
  const { exitCode, stderr } = await run(['sh', '-c', command], { cwd: '/', env, waitMs: 600_000 })
  if (exitCode !== 0) process.stderr.write(`${command} failed: ${stderr}\n`)
}
