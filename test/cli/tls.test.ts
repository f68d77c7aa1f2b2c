import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pasteCurl, petstore, portOf, run, startServer, temporaryFolder, testMsMax } from '../support/process.ts'
import { hasOpenssl, makeCertificate } from './child.ts'

setDefaultTimeout(testMsMax)

/** The cipher suite that a TLS 1.2 client with these suites gets, or the error. Node's client lets us choose them. */
async function suiteOf(port: number, ciphers: string): Promise<string> {
  const script = `
    const options = { host: '127.0.0.1', port: ${port}, ciphers: '${ciphers}', maxVersion: 'TLSv1.2', rejectUnauthorized: false }
    const socket = require('node:tls').connect(options, () => { console.log(socket.getCipher().name); socket.destroy() })
    socket.on('error', error => console.log(error.code))`
  const { stdout } = await run(['node', '--eval', script], { cwd: '.' })
  return stdout.trim()
}

describe.skipIf(!hasOpenssl)('with a certificate', () => {
  test('the server speaks HTTPS, and the curl line works when pasted', async () => {
    using folder = temporaryFolder()
    await makeCertificate(folder.path)
    const args = ['serve', '--port', '0', '--tls-cert', 'cert.pem', '--tls-key', 'key.pem']
    await using server = await startServer({ cwd: folder.path, args })
    expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/v1$/)
    expect(await pasteCurl(server, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })
    await expect(fetch(`${server.url}/pets`)).rejects.toThrow()
    expect((await fetch(`${server.url}/pets`, { tls: { rejectUnauthorized: false } })).status).toBe(401)

    // TLS 1.2 has only suites with forward secrecy and authenticated encryption, in the order of the server.
    const port = portOf(server)
    for (const suite of ['AES128-SHA', 'AES256-GCM-SHA384', 'ECDHE-RSA-AES128-SHA', 'ECDHE-RSA-AES256-SHA384']) {
      expect([suite, await suiteOf(port, suite)]).toEqual([suite, 'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE'])
    }
    const strong = ['ECDHE-RSA-CHACHA20-POLY1305', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES128-GCM-SHA256']
    for (const suite of strong) expect(await suiteOf(port, suite)).toBe(suite)
    expect(await suiteOf(port, strong.join(':'))).toBe('ECDHE-RSA-AES128-GCM-SHA256')
    expect((await server.stop('SIGTERM')).exitCode).toBe(0)
  })

  test('that is invalid, or for another key, it is refused in one line', async () => {
    using folder = temporaryFolder()
    using other = temporaryFolder()
    for (const { path } of [folder, other]) await makeCertificate(path)
    writeFileSync(join(folder.path, 'none.pem'), 'This is no certificate.\n')
    const pairs = ['none.pem key.pem', 'cert.pem none.pem', `cert.pem ${join(other.path, 'key.pem')}`]
    for (const [cert = '', key = ''] of pairs.map(pair => pair.split(' '))) {
      const args = ['serve', '--port', '0', '--tls-cert', cert, '--tls-key', key]
      const { exitCode, stderr } = await petstore(args, { cwd: folder.path })
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: expect.stringMatching(/^petstore: Cannot use .*PEM.*\n$/),
      })
    }
  })
})
