import { readFileSync } from 'node:fs'
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'

/** What the figures were taken on, and with. */
export interface Machine {
  readonly system: string
  readonly processor: string
  readonly cores: number
  readonly memoryGb: number
  readonly versions: Readonly<Record<string, string>>
}

const bench = join(import.meta.dir, '..')

export function describeMachine(): Machine {
  return {
    system: `${platform()} ${release()} ${arch()}`,
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    versions: {
      petstore: readVersion(join(bench, '..')),
      bun: Bun.version,
      node: said(['node', '--version'], /v(\S+)/),
      nginx: said(['nginx', '-v'], /nginx\/(\S+)/),
      wrk: said(['wrk', '-v'], /wrk (\S+)/),
      ...packageVersions(),
    },
  }
}

function packageVersions(): Record<string, string> {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(bench, 'package.json'), 'utf8'))
  const names = Object.keys({ ...dependencies, ...optionalDependencies }).sort()
  return Object.fromEntries(names.map(name => [name, readVersion(join(bench, 'node_modules', name))]))
}

function readVersion(folder: string): string {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version
  } catch {
    return 'not installed'
  }
}

function said(command: readonly string[], pattern: RegExp): string {
  try {
    const { stdout, stderr } = Bun.spawnSync([...command])
    return pattern.exec(`${stdout}${stderr}`)?.[1] ?? 'unknown'
  } catch {
    return 'not installed'
  }
}
