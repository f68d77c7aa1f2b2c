import { run } from './process.ts'

/**
 * The path of a program that Debian has, under its own name as a package. In CI root gets it by apt-get if it is missing, and a
 * program that cannot be had is an error; elsewhere it is undefined, and a line on stderr says what is skipped.
 */
export async function program(name: string, tests: string, names = [name]): Promise<string | undefined> {
  const isCi = process.env['CI'] === 'true'
  const found = installed(names) ?? (isCi ? await install(name, names) : undefined)
  if (found !== undefined) return found
  const message = `${name} is not installed: ${tests} need the package ${name} of your system`
  if (isCi) throw new Error(message)
  process.stderr.write(`${message}, and are skipped\n`)
  return undefined
}

function installed(names: readonly string[]): string | undefined {
  const PATH = `${process.env['PATH']}:/usr/sbin`
  return names.map(name => Bun.which(name, { PATH })).find(path => path !== null) ?? undefined
}

async function install(name: string, names: readonly string[]): Promise<string | undefined> {
  if (process.getuid?.() !== 0 || !Bun.which('apt-get')) return undefined
  const proxies = Object.entries(process.env).filter(([variable]) => /^(https?|no)_proxy$/i.test(variable))
  const env = {
    ...Object.fromEntries(proxies.map(([variable, value = '']) => [variable, value])),
    DEBIAN_FRONTEND: 'noninteractive',
  }
  const command = `apt-get update && apt-get install -y ${name}`
  const { exitCode, stderr } = await run(['sh', '-c', command], { cwd: '/', env, waitMs: 600_000 })
  if (exitCode !== 0) process.stderr.write(`${command} failed: ${stderr}\n`)
  return installed(names)
}
