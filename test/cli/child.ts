import { expect } from 'bun:test'
import { issueApiKey, type Permission } from '../../src/api-key.ts'
import { openStores } from '../../src/store/open.ts'
import {
  type Ended,
  inherited,
  petstore,
  program,
  readOutput,
  run,
  type Server,
  type Surroundings,
  until,
} from '../support/process.ts'

/** `bin/petstore ARGS`, to be interrupted. Its stdin stays open. */
export function spawnPetstore(args: readonly string[], { cwd, env = {} }: Surroundings) {
  return Bun.spawn([program, ...args], { cwd, env: { ...inherited, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
}

export function spawnOnTerminal(command: readonly string[], { cwd, env = {} }: Surroundings) {
  let isClosed = false
  const child = Bun.spawn([...command], {
    cwd,
    env: { ...inherited, ...env },
    terminal: {
      data: (_, bytes) => {
        terminal.shown += Buffer.from(bytes)
      },
      exit: () => {
        isClosed = true
      },
    },
  })
  const exited = () => (isClosed ? (child.exitCode ?? undefined) : undefined)
  const terminal = {
    shown: '',
    type: (text: string) => child.terminal?.write(text),
    /** Resolves when the program asks, or has ended without a question. */
    asks: () => until('a question', () => terminal.shown.endsWith('[y/N] ') || exited()),
    /** The exit code, once everything is shown. */
    exited: () => until('the end of the program', exited),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.terminal?.[Symbol.asyncDispose]()
    },
  }
  return terminal
}

/** Creates a key in the store of this file, without the cost of starting the program. */
export async function storeKey(
  file: string,
  permission: Permission = 'read-write',
  { isRevoked = false, name = 'till' } = {},
) {
  const stores = await openStores(`sqlite:${file}`, { create: true })
  const { key, record } = issueApiKey({ name, permission, createdAt: new Date() })
  const { id } = await stores.keys.create(record)
  if (isRevoked) await stores.keys.revoke(id, new Date())
  await stores.close()
  return key
}

type ListedKey = Readonly<Record<string, string | null>>

export async function listKeys(cwd: string): Promise<readonly ListedKey[]> {
  const { exitCode, stdout, stderr } = await petstore(['keys', 'list', '--json'], { cwd })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** Runs one of the curl lines that the server printed, as if pasted into a shell: one lists animals, one adds Rex. */
export function pasteCurl({ stdout }: Server, surroundings: Surroundings, index: 0 | 1 = 0): Promise<Ended> {
  const line = stdout.match(/^ +curl .*$/gm)?.[index] ?? 'echo no curl line'
  return run(['sh', '-c', line], surroundings)
}

export const hasOpenssl = Bun.which('openssl') !== null
if (!hasOpenssl) process.stderr.write('openssl is not installed: the tests of TLS are skipped\n')

/** A self-signed certificate for 127.0.0.1, cert.pem, and its key, key.pem. */
export async function makeCertificate(cwd: string): Promise<void> {
  const request = 'req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1'
  await readOutput(['openssl', ...`${request} -keyout key.pem -out cert.pem`.split(' ')], { cwd })
}
