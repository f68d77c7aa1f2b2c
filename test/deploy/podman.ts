import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Ended,
  projectFolder,
  readOutput,
  run,
  type Server,
  startServer,
  temporaryFolder,
} from '../support/process.ts'

/** crun needs cgroups version 2 alone. On other machines, root mounts them where only this podman sees them. */
const withCgroups = existsSync('/sys/fs/cgroup/cgroup.controllers')
  ? []
  : [
      ...['unshare', '--mount', 'sh', '-c'],
      'umount --recursive /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"',
      'podman',
    ]

/** Waits for the end of its input, then removes the containers, volumes and images, and the folder "$0". */
const cleanUp = `
  cat >/dev/null
  "$@" rm --all --force --time 0
  "$@" volume prune --force
  "$@" rmi --all --force
  rm -rf "$0"`

/** Images, volumes and containers in a folder of their own, gone with this object or with this process. */
export class Podman implements AsyncDisposable {
  /** Short, because podman puts sockets into it. */
  readonly #folder = temporaryFolder().path
  readonly #command: readonly string[]
  readonly #cleaner: Bun.Subprocess<'pipe', 'ignore', 'ignore'>

  constructor(program: string) {
    const folders = ['root', 'runroot', 'tmpdir'].map(option => `--${option}=${join(this.#folder, option)}`)
    const storage = ['--storage-driver=vfs', '--cgroup-manager=cgroupfs', '--events-backend=none']
    this.#command = [...withCgroups, program, ...folders, ...storage]
    // In a session of its own, which Ctrl-C does not reach.
    this.#cleaner = Bun.spawn(['sh', '-c', cleanUp, this.#folder, ...this.#command], {
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
  }

  try(...args: readonly string[]): Promise<Ended> {
    return run([...this.#command, ...args], { cwd: projectFolder, waitMs: 300_000 })
  }

  /** What the command prints. Throws if it fails. */
  async call(...args: readonly string[]): Promise<string> {
    return (await readOutput([...this.#command, ...args], { cwd: projectFolder, waitMs: 300_000 })).trim()
  }

  /** Starts a server in a container, which is stopped with `podman stop`. */
  start(name: string, ...args: readonly string[]): Promise<Server> {
    const command = [...this.#command, 'run', `--name=${name}`, ...runFlags, ...args]
    return startServer({ cwd: projectFolder, command })
  }

  build(tag: string, context: string, ...args: readonly string[]): Promise<string> {
    // Each layer is a whole copy with vfs.
    const flags = ['--isolation=chroot', '--layers=false', '--format=docker', `--tag=${tag}`]
    return this.call('build', ...flags, ...args, context)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleaner.stdin.end()
    await this.#cleaner.exited
  }
}

/** A sandbox may allow neither networks of its own, nor cgroups, nor higher limits. */
const limits = ['--ulimit=nofile=1024:1024', '--ulimit=nproc=1024:1024']
export const runFlags = ['--network=host', '--cgroups=disabled', ...limits]
