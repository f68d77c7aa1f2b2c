import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nginx as findNginx } from './debian.ts'
import { projectFolder, temporaryFolder, until } from './process.ts'

/** The path of the program; undefined if it is not installed. */
export const nginx = await findNginx()

/** The documented configuration, on `port` of 127.0.0.1 and without TLS, in front of these instances. */
export const documentedConfiguration = (port: number, ...instances: readonly string[]) =>
  configurationAt(`127.0.0.1:${port}`, ...instances)

/** The same at any address that nginx can listen on. */
export function configurationAt(address: string, ...instances: readonly string[]): string {
  const [first = '', second] = instances
  const server = configurationIn('docs/operating.md')
    .replace('127.0.0.1:8080', first)
    .replace('listen 443 ssl', `listen ${address}`)
    .replace(/^ *ssl_.*\n/gm, '')
  if (second === undefined) return server
  const upstream = configurationIn('docs/scaling.md').replace('127.0.0.1:8081', first).replace('127.0.0.1:8082', second)
  return server.replace(/^upstream [^}]*}\n/, upstream)
}

/** How long to wait between the restarts of two instances, as documented. */
export const restartPauseMs =
  Number(/wait another (\d+) seconds/.exec(readFileSync(join(projectFolder, 'docs/scaling.md'), 'utf8'))?.[1]) * 1_000

function configurationIn(document: string): string {
  const text = readFileSync(join(projectFolder, document), 'utf8')
  return /^```nginx\n([\s\S]*?)^```$/m.exec(text)?.[1] ?? ''
}

/** Serves until it is disposed of. Resolves when it answers. */
export async function startNginx(server: string, port: number): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder())
  const file = join(folder.path, 'nginx.conf')
  writeFileSync(file, configuration(folder.path, server))
  const proxy = Bun.spawn([nginx ?? '', '-p', folder.path, '-c', file], { stdout: 'ignore', stderr: 'ignore' })
  stack.defer(async () => {
    proxy.kill('SIGTERM')
    await proxy.exited
  })
  const isUp = () => fetch(`http://127.0.0.1:${port}/livez`).then(({ ok }) => ok || undefined)
  await until('nginx', () => isUp().catch(() => undefined))
  return stack.move()
}

function configuration(folder: string, server: string): string {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const temporary = kinds.map(kind => `${kind}_temp_path ${folder}/${kind};`)
  return `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr; events {}
    http { access_log off; ${temporary.join(' ')} ${server} }`
}
