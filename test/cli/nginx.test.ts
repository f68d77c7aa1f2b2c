import { expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/folder.ts'
import { projectFolder, startServer, testMsMax, until } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const nginx = Bun.which('nginx', { PATH: `${process.env['PATH']}:/usr/sbin` })
if (!nginx) process.stderr.write('nginx is not installed: the test of its configuration is skipped\n')

const key = 'a-key-from-outside-0123456789'

/** The configuration that the document shows, on ports of this test, without a certificate. */
function documentedServer(servicePort: string, port: number): string {
  const document = readFileSync(join(projectFolder, 'docs/operating.md'), 'utf8')
  const [, block = ''] = /^```nginx\n([\s\S]*?)^```$/m.exec(document) ?? []
  return block
    .replace('127.0.0.1:8080', `127.0.0.1:${servicePort}`)
    .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
    .replace(/^ *ssl_.*\n/gm, '')
}

function configuration(folder: string, server: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    kind => `${kind}_temp_path ${folder}/${kind};`,
  )
  return `daemon off;
    master_process off;
    pid ${folder}/nginx.pid;
    error_log stderr;
    events {}
    http { access_log off; ${temporary.join(' ')} ${server} }`
}

function freePort(): number {
  const probe = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = probe
  probe.stop(true)
  return port
}

test.skipIf(!nginx)('the nginx configuration of the operating document serves every operation', async () => {
  using folder = temporaryFolder()
  const port = freePort()
  const publicUrl = `http://127.0.0.1:${port}/v1`
  const env = { PETSTORE_API_KEY: key, PETSTORE_PUBLIC_URL: publicUrl }
  await using server = await startServer({ cwd: folder.path, env })
  const file = join(folder.path, 'nginx.conf')
  writeFileSync(file, configuration(folder.path, documentedServer(new URL(server.url).port, port)))
  const proxy = Bun.spawn([nginx ?? '', '-p', folder.path, '-c', file], { stdout: 'ignore', stderr: 'pipe' })
  try {
    await until('nginx', () =>
      fetch(`http://127.0.0.1:${port}/livez`).then(
        ({ ok }) => ok || undefined,
        () => undefined,
      ),
    )
    const ask = (address: string, init: RequestInit = {}) =>
      fetch(address, {
        ...init,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      })
    const created = await ask(`${publicUrl}/pets`, {
      method: 'POST',
      body: '{"name":"Rex","categoryId":9007199254740993}',
    })
    expect(created.status).toBe(201)
    const location = created.headers.get('location') ?? ''
    expect(location).toStartWith(publicUrl)
    expect(await (await ask(location)).text()).toBe('{"id":1,"name":"Rex","categoryId":9007199254740993}')
    expect((await ask(`${publicUrl}/pets?limit=0`)).status).toBe(400)
    const tooLarge = await ask(`${publicUrl}/pets`, { method: 'POST', body: 'x'.repeat(100_000) })
    expect([tooLarge.status, JSON.parse(await tooLarge.text()).code]).toEqual([413, 'body_too_large'])
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async () => (await ask(`${publicUrl}/pets`)).status),
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
  } finally {
    proxy.kill('SIGTERM')
    await proxy.exited
  }
})
