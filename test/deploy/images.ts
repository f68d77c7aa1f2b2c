import { existsSync, mkdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { projectFolder, readOutput, temporaryFolder } from '../support/process.ts'

interface Docker {
  call(...args: readonly string[]): Promise<string>
}

/** An image of files of this machine, under the same paths, because a sandbox may not reach any registry of images. */
interface Content {
  readonly files: readonly string[]
  /** More files, by their paths. */
  readonly texts?: Readonly<Record<string, string>>
  /** Lines of a Containerfile. */
  readonly changes?: readonly string[]
}

export async function importImage(docker: Docker, tag: string, { files, texts = {}, changes = [] }: Content) {
  using folder = temporaryFolder()
  const [root, archive] = [join(folder.path, 'root'), join(folder.path, 'root.tar')]
  mkdirSync(root)
  await shell('cp', '--parents', '--recursive', '--dereference', ...files, root)
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    writeFileSync(join(root, path), text, { mode: 0o755 })
  }
  // A clone may be in a folder that only its owner may enter.
  await shell('tar', '--create', '--mode=a+rX', `--file=${archive}`, `--directory=${root}`, '.')
  await docker.call('import', ...changes.map(each => `--change=${each}`), archive, tag)
}

/** The files of a Debian package. */
export async function filesOf(debianPackage: string): Promise<readonly string[]> {
  const listed = await shell('dpkg', '-L', debianPackage)
  return listed.split('\n').filter(path => !path.startsWith('/usr/share/doc') && statSync(path).isFile())
}

/** Programs with the libraries that they need. */
export async function withLibraries(...programs: readonly string[]): Promise<readonly string[]> {
  const libraries = await shell('sh', '-c', `ldd ${programs.join(' ')} | grep -o '/[^ :]* ' | sort -u`)
  return [...programs, ...libraries.split(/\s+/)]
}

/** This machine's Node, npm and shell. */
export async function nodeContent(...more: readonly string[]) {
  const node = realpathSync(Bun.which('node') ?? 'node')
  const npm = dirname(dirname(realpathSync(Bun.which('npm') ?? 'npm')))
  const programs = await withLibraries(node, '/bin/sh', '/bin/mkdir', '/usr/bin/env')
  return {
    files: [...programs, npm, ...more],
    texts: { '/bin/npm': `#!/bin/sh\nexec node ${npm}/bin/npm-cli.js "$@"\n` },
    changes: [`ENV PATH=${dirname(node)}:/usr/bin:/bin`],
  }
}

/** Writes a file with this machine's settings of npm. Gives the files that they name. */
export async function writeNpmSettings(file: string): Promise<readonly string[]> {
  const get = (name: string) => shell('npm', 'config', 'get', name)
  const [user, registry, cafile] = [await get('userconfig'), await get('registry'), await get('cafile')]
  const certificates = existsSync(cafile) ? [cafile] : []
  const lines = [existsSync(user) ? readFileSync(user, 'utf8') : '', `registry=${registry}`]
  writeFileSync(file, [...lines, ...certificates.map(path => `cafile=${path}`), ''].join('\n'))
  return certificates
}

/** What the command prints. Throws if it fails. */
export async function shell(...command: readonly string[]): Promise<string> {
  const env = Object.fromEntries(Object.entries(process.env).map(([name, value = '']) => [name, value]))
  return (await readOutput(command, { cwd: projectFolder, env, waitMs: 60_000 })).trim()
}
