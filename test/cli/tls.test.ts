import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { petstore, refusal, run, startServer, temporaryFolder } from '../support/process.ts'
import { hasOpenssl, makeCertificate, pasteCurl } from './child.ts'

/** The cipher suite that a TLS 1.2 client with these suites gets, or the alert. */
async function negotiateSuite(port: number, ciphers: string): Promise<string | undefined> {
  const command = ['openssl', 's_client', '-connect', `127.0.0.1:${port}`, '-tls1_2', '-cipher', ciphers]
  const { stdout, stderr } = await run(command, { cwd: '.' })
  return /alert handshake failure/.exec(stderr)?.[0] ?? /Cipher is (\S+)/.exec(stdout)?.[1]
}

const keyIn = ({ stdout }: { stdout: string }) => /pets_\w{36}/.exec(stdout)?.[0] ?? ''

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
    await expect(fetch(`${server.url}/pets`)).rejects.toThrow()
    expect((await fetch(`${server.url}/pets`, { tls: { rejectUnauthorized: false } })).status).toBe(401)
    const env = { PETSTORE_API_KEY: 'a-key-of-this-service' }
    for (const [url, code, line] of [
      [server.url.replace('https', 'http'), 'ECONNRESET', 'pets list --url'],
      [server.url, 'DEPTH_ZERO_SELF_SIGNED_CERT', 'conform --read-only'],
    ] as const) {
      const stderr = await refusal([...line.split(' '), url], { cwd: folder.path, env })
      expect(stderr).toMatch(new RegExp(`^petstore: Cannot reach ${url}: .*\\(${code}\\)`))
    }
    const trusting = { ...env, PETSTORE_API_KEY: keyIn(server), NODE_EXTRA_CA_CERTS: 'cert.pem' }
    const listed = await petstore(['pets', 'list', '--url', server.url], { cwd: folder.path, env: trusting })
    expect(listed).toEqual({ exitCode: 0, stdout: '', stderr: 'The pet store has no animals\n' })

    // TLS 1.2 has only suites with forward secrecy and authenticated encryption, in the order of the server.
    const { port } = server
    for (const suite of ['AES128-SHA', 'AES256-GCM-SHA384', 'ECDHE-RSA-AES128-SHA', 'ECDHE-RSA-AES256-SHA384']) {
      expect([suite, await negotiateSuite(port, suite)]).toEqual([suite, 'alert handshake failure'])
    }
    const strong = ['ECDHE-RSA-CHACHA20-POLY1305', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES128-GCM-SHA256']
    for (const suite of strong) expect(await negotiateSuite(port, suite)).toBe(suite)
    expect(await negotiateSuite(port, strong.join(':'))).toBe('ECDHE-RSA-AES128-GCM-SHA256')
    expect((await server.stop('SIGTERM')).exitCode).toBe(0)
  })

  test('that is invalid, unreadable or for another key, it is refused in one line', async () => {
    using other = temporaryFolder()
    await makeCertificate(other.path)
    writeFileSync(join(folder.path, 'none.pem'), 'This is no certificate.\n')
    for (const [exitCode, cert, key, problem] of [
      [1, 'none.pem', 'key.pem', /^petstore: Cannot use .*PEM.*\n$/],
      [1, 'cert.pem', 'none.pem', /^petstore: Cannot use .*PEM.*\n$/],
      [1, 'cert.pem', join(other.path, 'key.pem'), /^petstore: Cannot use .*PEM.*\n$/],
      [2, '.', 'key.pem', /^petstore: --tls-cert is "\.": expected a file that this user may read\n$/],
    ] as const) {
      const args = ['serve', '--port', '0', '--tls-cert', cert, '--tls-key', key]
      expect(await refusal(args, { cwd: folder.path }, exitCode)).toMatch(problem)
    }
  })
})
