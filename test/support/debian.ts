import { globSync } from 'node:fs'
import { run } from './process.ts'

/** The paths of programs that Debian has as packages; undefined if one is not installed. */
export const chromium = () =>
  program('chromium', 'the browser tests', ['chromium', 'chromium-browser', 'google-chrome'])
export const pgbouncer = () => program('pgbouncer', 'the tests of a connection pooler', ['pgbouncer'])
export const nginx = () => program('nginx', 'the tests of its configurations', ['nginx'])

const isCi = process.env['CI'] === 'true'

/**
 * In CI, root installs a missing package with apt-get, and a program that is still missing is an error. Elsewhere a line on
 * stderr says which tests are skipped.
 */
async function program(name: string, tests: string, names: readonly string[]): Promise<string | undefined> {
  const found = installed(names) ?? (isCi ? await install(name, names) : undefined)
  return found ?? skipped(`${tests} need the package ${name} of your system`)
}

/** Says why tests are skipped. In CI, that is an error. */
export function skipped(reason: string): undefined {
  if (isCi) throw new Error(reason)
  process.stderr.write(`Skipped: ${reason}\n`)
}

/** The paths of several programs, each named with its package. */
export async function programs<Name extends string>(tests: string, packages: Readonly<Record<Name, string>>) {
  const names = Object.keys(packages) as Name[]
  const missing = () => [...new Set(names.filter(name => !installed([name])).map(name => packages[name]))]
  if (missing().length > 0 && isCi) await install(missing().join(' '), [])
  if (missing().length > 0) return skipped(`${tests} need the Debian packages ${missing().join(', ')}`)
  return Object.fromEntries(names.map(name => [name, installed([name])])) as Record<Name, string>
}

function installed(names: readonly string[]): string | undefined {
  // Debian keeps PostgreSQL's programs out of the PATH, in a folder for each version.
  const servers = globSync('/usr/lib/postgresql/*/bin').sort().reverse()
  const PATH = [process.env['PATH'], '/usr/sbin', ...servers].join(':')
  return names.map(name => Bun.which(name, { PATH })).find(path => path !== null) ?? undefined
}

async function install(name: string, names: readonly string[]): Promise<string | undefined> {
  if (process.getuid?.() !== 0 || !Bun.which('apt-get')) return undefined
  const proxies = Object.entries(process.env).filter(([variable]) => /^(https?|no)_proxy$/i.test(variable))
  const env = {
    ...Object.fromEntries(proxies.map(([variable, value = '']) => [variable, value])),
    DEBIAN_FRONTEND: 'noninteractive',
  }
  const command = `apt-get update && apt-get install -y -o DPkg::Lock::Timeout=300 ${name}`
  const { exitCode, stderr } = await run(['sh', '-c', command], { cwd: '/', env, waitMs: 600_000 })
  if (exitCode !== 0) process.stderr.write(`${command} failed: ${stderr}\n`)
  return installed(names)
}
