import { expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pasteCurl, petstore, run, startServer, temporaryFolder, testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const hasOpenssl = Bun.which('openssl') !== null
if (!hasOpenssl) process.stderr.write('openssl is not installed: the tests of HTTPS are skipped\n')

/** A self-signed certificate for 127.0.0.1. */
async function makeCertificate(cwd: string): Promise<void> {
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=127.0.0.1']
  const made = await run(['openssl', ...request, '-keyout', 'key.pem', '-out', 'cert.pem'], { cwd })
  expect(made.exitCode).toBe(0)
}

const files = ['--tls-cert', 'cert.pem', '--tls-key', 'key.pem']

test.skipIf(!hasOpenssl)(
  'with a certificate the server speaks HTTPS, and the curl line works when pasted',
  async () => {
    using folder = temporaryFolder()
    await makeCertificate(folder.path)
    await using server = await startServer({ cwd: folder.path, args: ['serve', '--port', '0', ...files] })
    expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/v1$/)
    expect(await pasteCurl(server, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })
    const unverified = await fetch(`${server.url}/pets`).catch((error: unknown) => error)
    expect(unverified).toBeInstanceOf(Error)
    const answer = await fetch(`${server.url}/pets`, { tls: { rejectUnauthorized: false } })
    expect(answer.status).toBe(401)
    expect((await server.stop('SIGTERM')).exitCode).toBe(0)
  },
)

/** The cipher suite that a TLS 1.2 client with these suites gets, or the error. Node's client lets us choose them. */
async function suiteOf(port: string, ciphers: string): Promise<string> {
  const script = `
    const options = { host: '127.0.0.1', port: ${port}, ciphers: '${ciphers}', maxVersion: 'TLSv1.2', rejectUnauthorized: false }
    const socket = require('node:tls').connect(options, () => { console.log(socket.getCipher().name); socket.destroy() })
    socket.on('error', error => console.log(error.code))`
  const { stdout } = await run(['node', '--eval', script], { cwd: '.' })
  return stdout.trim()
}

test.skipIf(!hasOpenssl)(
  'TLS 1.2 has only suites with forward secrecy and authenticated encryption, in the order of the server',
  async () => {
    using folder = temporaryFolder()
    await makeCertificate(folder.path)
    await using server = await startServer({ cwd: folder.path, args: ['serve', '--port', '0', ...files] })
    const { port } = new URL(server.url)
    for (const suite of ['AES128-SHA', 'AES256-GCM-SHA384', 'ECDHE-RSA-AES128-SHA', 'ECDHE-RSA-AES256-SHA384']) {
      expect([suite, await suiteOf(port, suite)]).toEqual([suite, 'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE'])
    }
    const strong = ['ECDHE-RSA-CHACHA20-POLY1305', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES128-GCM-SHA256']
    for (const suite of strong) expect(await suiteOf(port, suite)).toBe(suite)
    expect(await suiteOf(port, strong.join(':'))).toBe('ECDHE-RSA-AES128-GCM-SHA256')
  },
)

test.skipIf(!hasOpenssl)('an invalid certificate, or one for another key, is refused in one line', async () => {
  using folder = temporaryFolder()
  await makeCertificate(folder.path)
  writeFileSync(join(folder.path, 'none.pem'), 'This is no certificate.\n')
  using other = temporaryFolder()
  await makeCertificate(other.path)
  for (const [cert, key] of [
    ['none.pem', 'key.pem'],
    ['cert.pem', 'none.pem'],
    ['cert.pem', join(other.path, 'key.pem')],
  ] as const) {
    const args = ['serve', '--port', '0', '--tls-cert', cert, '--tls-key', key]
    const { exitCode, stderr } = await petstore(args, { cwd: folder.path })
    expect(exitCode).toBe(1)
    expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(/^petstore: Cannot use .*PEM.*$/)])
  }
})
