import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nginx as findNginx } from './debian.ts'
import { outputFile, projectFolder, temporaryFolder, until } from './process.ts'

/** The path of the program; undefined if it is not installed. */
export const nginx = await findNginx()

/** deploy/nginx.conf on `port` of 127.0.0.1, in front of one or two instances. */
export function documentedConfiguration(port: number, first: string, second?: string): string {
  const text = readFileSync(join(projectFolder, 'deploy/nginx.conf'), 'utf8')
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
    .replaceAll('petstore-1:8080', first)
  // A single instance needs one line, as documented.
  if (second === undefined) return text.replace(/^.*(petstore-2|backup;).*\n/gm, '')
  return text.replaceAll('petstore-2:8080', second)
}

const restartScript = readFileSync(join(projectFolder, 'deploy/rolling-restart.sh'), 'utf8')
/** How long the script waits between the restarts of two instances. */
export const restartPauseMs = Number(/^ {2}sleep (\d+)$/m.exec(restartScript)?.[1]) * 1_000

/** Serves until it is disposed of. Resolves when it answers. */
export async function startNginx(server: string, port: number): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder())
  const file = join(folder.path, 'nginx.conf')
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const temporary = kinds.map(kind => `${kind}_temp_path ${folder.path}/${kind};`)
  const configuration = `daemon off; master_process off; pid ${folder.path}/nginx.pid; error_log stderr; events {}
    http { access_log off; ${temporary.join(' ')} ${server} }`
  writeFileSync(file, configuration)
  const output = Bun.file(outputFile('nginx'))
  const proxy = Bun.spawn([nginx ?? '', '-p', folder.path, '-c', file], { stdout: 'ignore', stderr: output })
  stack.defer(async () => {
    proxy.kill('SIGTERM')
    await proxy.exited
  })
  const isUp = () => fetch(`http://127.0.0.1:${port}/livez`).then(({ ok }) => ok || undefined)
  await until('nginx', () => isUp().catch(() => undefined))
  return stack.move()
}
