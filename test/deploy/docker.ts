import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { network, projectFolder, readOutput, type Surroundings, temporaryFolder, until } from '../support/process.ts'
import { extractFromDebian13 } from './debian-13.ts'
import { shell } from './images.ts'

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
    const works = (...args: string[]) =>
      this.call(...args).then(
        () => true,
        () => undefined,
      )
    await until('the Docker daemon', () => works('version'))
    if (await works('compose', 'version')) return
    const apt = join(this.folder, 'apt')
    await extractFromDebian13('docker-compose', apt)
    await shell('cp', '-r', join(apt, 'usr/libexec/docker/cli-plugins'), this.folder)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#supervisor.stdin.end()
    await this.#supervisor.exited
    if (existsSync(this.folder)) throw new Error(`Docker left files in ${this.folder}`)
  }
}
