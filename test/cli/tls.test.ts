import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { petstore, refusal, run, startServer, temporaryFolder } from '../support/process.ts'
import { hasOpenssl, makeCertificate, pasteCurl } from './child.ts'

describe.skipIf(!hasOpenssl)('with a certificate', () => {
  const folder = temporaryFolder()
  beforeAll(() => makeCertificate(folder.path))
  afterAll(() => folder[Symbol.dispose]())

  test('the server speaks HTTPS, and the curl line works when pasted', async () => {
    const args = ['serve', '--port', '0', '--host', '0.0.0.0', '--tls-cert', 'cert.pem', '--tls-key', 'key.pem']
    await using server = await startServer({ cwd: folder.path, args })
    expect(server.stdout).not.toMatch(/http:|in the clear/)
    expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/v1$/)
    expect(await pasteCurl(server, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]\n' })
    const health = await petstore(['health', '-p', `${server.port}`, '--tls-cert', 'cert.pem'], { cwd: folder.path })
    expect(health).toMatchObject({ exitCode: 0, stdout: 'ok\n' })

    const env = { PETSTORE_API_KEY: /pets_\w{36}/.exec(server.stdout)?.[0] ?? '' }
    for (const [url, code, line] of [
      [server.url.replace('https', 'http'), 'ECONNRESET', 'pets list --url'],
      [server.url, 'DEPTH_ZERO_SELF_SIGNED_CERT', 'conform --read-only'],
    ] as const) {
      expect(await refusal([...line.split(' '), url], { cwd: folder.path, env })).toContain(`(${code})`)
    }
    const trusting = { ...env, NODE_EXTRA_CA_CERTS: 'cert.pem' }
    const listed = await petstore(['pets', 'list', '--url', server.url], { cwd: folder.path, env: trusting })
    expect(listed).toMatchObject({ exitCode: 0, stdout: '' })

    const connect = ['openssl', 's_client', '-connect', `127.0.0.1:${server.port}`, '-tls1_2', '-cipher']
    for (const [suite, exitCode] of [['AES256-GCM-SHA384', 1] as const, ['ECDHE-RSA-AES256-GCM-SHA384', 0] as const]) {
      expect([suite, (await run([...connect, suite], { cwd: '.' })).exitCode]).toEqual([suite, exitCode])
    }
  })

  test('that is invalid or for another key, it is refused in one line', async () => {
    using other = temporaryFolder()
    await makeCertificate(other.path)
    writeFileSync(join(folder.path, 'none.pem'), 'This is no certificate.\n')
    const otherKey = join(other.path, 'key.pem')
    for (const [cert, key] of [
      ['none.pem', 'key.pem'],
      ['cert.pem', 'none.pem'],
      ['cert.pem', otherKey],
    ] as const) {
      const args = ['serve', '--port', '0', '--tls-cert', cert, '--tls-key', key]
      expect(await refusal(args, { cwd: folder.path })).toMatch(/^petstore: .*--tls-cert.*\n$/)
    }
  })
})
