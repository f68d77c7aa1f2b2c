import { type Browser, chromium } from 'playwright-core'
import { run } from './process.ts'

const programs = ['chromium', 'chromium-browser', 'google-chrome']

/** No window, and no traffic of its own. */
const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/**
 * The path of the system's Chromium, which root gets by apt-get where it is missing. Where it cannot be had this is
 * undefined, and a line on stderr says so; in CI it is an error.
 */
export async function findChromium(): Promise<string | undefined> {
  const found = installed() ?? (await install())
  if (found !== undefined) return found
  const message = 'Chromium is not installed: the browser tests need the package chromium of your system'
  if (process.env['CI'] === 'true') throw new Error(message)
  process.stderr.write(`${message}, and are skipped\n`)
  return undefined
}

export function launchChromium(executablePath: string, moreFlags: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath, args: [...flags, ...moreFlags] })
}

function installed(): string | undefined {
  return programs.map(program => Bun.which(program)).find(path => path !== null) ?? undefined
}

async function install(): Promise<string | undefined> {
  if (process.getuid?.() !== 0 || !Bun.which('apt-get')) return undefined
  const proxies = Object.entries(process.env).filter(([name]) => /^(https?|no)_proxy$/i.test(name))
  const env = {
    ...Object.fromEntries(proxies.map(([name, value = '']) => [name, value])),
    DEBIAN_FRONTEND: 'noninteractive',
  }
  const command = 'apt-get update && apt-get install -y chromium'
  const { exitCode, stderr } = await run(['sh', '-c', command], { cwd: '/', env, waitMs: 600_000 })
  if (exitCode !== 0) process.stderr.write(`${command} failed: ${stderr}\n`)
  return installed()
}
