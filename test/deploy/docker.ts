import { existsSync, mkdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { network, projectFolder, readOutput, type Surroundings, temporaryFolder, until } from '../support/process.ts'
import { extractFromDebian13, shell } from './debian-13.ts'

/** Files of this machine, which keep their paths; more files, by their paths; lines of a Containerfile. */
type Content = Readonly<{ files: readonly string[]; texts?: Record<string, string>; changes?: readonly string[] }>

/** Runs the daemon until the end of its input, then removes the containers and networks, and the folder "$0". */
const supervise = `
  "$@" >"$0/log" 2>&1 &
  cat
  docker ps --all --quiet | xargs --no-run-if-empty docker rm --force --volumes
  docker network prune --force
  kill $!
  wait
  rm -rf "$0"`

/** A daemon with a folder of its own, gone with this object or with this process. It leaves the firewall alone. */
export class Docker implements AsyncDisposable {
  readonly folder = temporaryFolder().path
  readonly #env = { ...network, DOCKER_CONFIG: this.folder, DOCKER_HOST: `unix://${join(this.folder, 'socket')}` }
  readonly #supervisor: Bun.Subprocess<'pipe', 'ignore', 'ignore'>

  constructor(dockerd: string) {
    const folders = ['data-root', 'exec-root', 'pidfile'].map(option => `--${option}=${join(this.folder, option)}`)
    const machine = ['--bridge=none', '--iptables=false', '--ip-forward=false', '--oom-score-adjust=0']
    const flags = [`--host=${this.#env.DOCKER_HOST}`, ...folders, '--storage-driver=vfs', ...machine]
    // In a session of its own, which Ctrl-C does not reach.
    this.#supervisor = Bun.spawn(['sh', '-c', supervise, this.folder, dockerd, ...flags], {
      cwd: '/',
      env: { ...process.env, ...this.#env },
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
  }

  /** The surroundings of a command that reaches this daemon. */
  around(cwd: string, env = {}): Surroundings {
    return { cwd, env: { ...this.#env, ...env }, waitMs: 300_000 }
  }

  /** What the command prints. Throws if it fails. */
  async call(...args: readonly string[]): Promise<string> {
    return (await readOutput(['docker', ...args], this.around(projectFolder))).trim()
  }

  /** Waits for the daemon, and installs Compose for it: Debian 12 has only version 1, which cannot read our file. */
  async ready(): Promise<void> {
    const isUp = () => this.call('version').then(() => true)
    await until('the Docker daemon', () => isUp().catch(() => undefined))
    if (await this.call('compose', 'version').catch(() => '')) return
    const apt = join(this.folder, 'apt')
    await extractFromDebian13('docker-compose', apt)
    await shell('cp', '-r', join(apt, 'usr/libexec/docker/cli-plugins'), this.folder)
  }

  /** Makes an image of files of this machine, because a sandbox may not reach a registry of images. */
  async importImage(tag: string, { files, texts = {}, changes = [] }: Content): Promise<void> {
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
    await this.call('import', ...changes.map(each => `--change=${each}`), archive, tag)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#supervisor.stdin.end()
    await this.#supervisor.exited
    if (existsSync(this.folder)) throw new Error(`Docker left files in ${this.folder}`)
  }
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
