import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Any 16 characters will do: the servers listen on 127.0.0.1 and live for some seconds. */
export const benchKey = 'bench-key-0123456789'

/** A server that is measured, on a store of its own. */
export interface Contender {
  readonly name: string
  command(file: string): readonly string[]
}

export interface Running extends AsyncDisposable {
  /** http://127.0.0.1:PORT/v1 */
  readonly url: string
}

const root = join(import.meta.dir, '..')

const serve = (file: string, ...flags: string[]) => [
  join(root, 'bin/petstore'),
  ...['serve', '--port', '0', '--database-url', `sqlite:${file}`],
  ...flags,
]

export const contenders = {
  ours: { name: 'petstore', command: file => serve(file) },
  silent: { name: 'the same, without a log', command: file => serve(file, '--log-level', 'error') },
  commitEach: {
    name: 'the same, each POST committed on the serving thread',
    command: file => [
      process.execPath,
      '--no-env-file',
      join(import.meta.dir, 'contenders/commit-each.ts'),
      file,
      benchKey,
    ],
  },
} as const satisfies Record<string, Contender>

/** Starts it in an empty folder, and ends it by its process id. */
export async function start({ name, command }: Contender): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-bench-'))
  const { PATH = '', HOME = '' } = process.env
  const child = Bun.spawn([...command(join(folder, 'pets.db'))], {
    cwd: folder,
    env: { PATH, HOME, PETSTORE_API_KEY: benchKey },
    stdout: 'pipe',
    // As a service would have it: the log goes to a file.
    stderr: Bun.file(join(folder, 'log')),
  })
  const url = await addressOf(child.stdout)
  if (!url) throw new Error(`${name} did not start`)
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
      rmSync(folder, { recursive: true })
    },
  }
}

async function addressOf(stdout: ReadableStream<Uint8Array>): Promise<string | undefined> {
  let text = ''
  for await (const chunk of stdout) {
    text += new TextDecoder().decode(chunk)
    const address = / serves (http:\S+)/.exec(text)?.[1]
    if (address) return address
  }
  return undefined
}
