import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { SQL } from 'bun'
import { temporaryFolder } from '../support/folder.ts'
import { type Cluster, own, startCluster } from '../support/postgres.ts'
import { postgresPrograms } from '../support/postgres-program.ts'
import { petstore, run, startServer, testMsMax } from '../support/process.ts'
import { describeWithOwnPostgres } from '../support/with-postgres.ts'

setDefaultTimeout(testMsMax)

const hasOpenssl = Bun.which('openssl') !== null
if (!hasOpenssl)
  process.stderr.write('openssl is not installed: the tests of TLS to PostgreSQL are skipped\n')

const key = 'a-key-from-outside-0123456789'
const hidden = 'hunter2-s3cret'

/** For 127.0.0.1 alone, good for a day, and signed by nobody. */
async function makeCertificate(cwd: string): Promise<void> {
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=127.0.0.1']
  const name = ['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', 'key.pem', '-out', 'cert.pem']
  const made = await run(['openssl', ...request, ...name], { cwd })
  expect(made.exitCode).toBe(0)
}

describeWithOwnPostgres('serve on a PostgreSQL whose certificate nobody has signed', () => {
  describe.skipIf(!hasOpenssl)('TLS', () => {
    const folder = temporaryFolder()
    const certificate = join(folder.path, 'cert.pem')
    let cluster: Cluster

    beforeAll(async () => {
      await makeCertificate(folder.path)
      const programs = postgresPrograms()
      if (programs instanceof Error) throw programs
      own(programs, folder.path)
      cluster = await startCluster([
        'ssl = on',
        `ssl_cert_file = '${certificate}'`,
        `ssl_key_file = '${join(folder.path, 'key.pem')}'`,
      ])
    }, testMsMax)
    afterAll(async () => {
      await cluster[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    })

    const urlWith = (sslmode: string, host = cluster.host) =>
      `postgres://postgres:${hidden}@${host}/postgres?sslmode=${sslmode}`

    /** Whether each of the program's connections is encrypted. */
    async function encrypted(): Promise<readonly boolean[]> {
      await using sql = new SQL(cluster.url(), { max: 1 })
      const rows = await sql.unsafe<{ ssl: boolean }[]>(
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'petstore'",
      )
      return rows.map(({ ssl }) => ssl)
    }

    async function expectRefused(url: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
      using cwd = temporaryFolder()
      const args = ['serve', '--port', '0', '--database-url', url]
      const { exitCode, stdout, stderr } = await petstore(args, { cwd: cwd.path, env })
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
      expect(stderr).toMatch(
        /^petstore: Cannot open the store [^\n]*certificate is not trusted; [^\n]*NODE_EXTRA_CA_CERTS[^\n]*\n$/,
      )
      expect(stderr).not.toContain(hidden)
    }

    test.each(['verify-full', 'verify-ca'])(
      'sslmode=%s is refused in one line that says what to set',
      async sslmode => expectRefused(urlWith(sslmode)),
    )

    test('sslmode=verify-full is refused for a name that is not in the certificate, although that is trusted', async () => {
      const url = urlWith('verify-full', cluster.host.replace('127.0.0.1', 'localhost'))
      await expectRefused(url, { NODE_EXTRA_CA_CERTS: certificate })
    })

    test.each([
      ['verify-full', 'its certificate in NODE_EXTRA_CA_CERTS', { NODE_EXTRA_CA_CERTS: certificate }],
      ['verify-ca', 'its certificate in NODE_EXTRA_CA_CERTS', { NODE_EXTRA_CA_CERTS: certificate }],
      ['require', 'nothing else', {}],
    ])('sslmode=%s and %s: it serves, through TLS', async (sslmode, _, env) => {
      using cwd = temporaryFolder()
      const args = ['serve', '--port', '0', '--database-url', urlWith(sslmode)]
      await using server = await startServer({ cwd: cwd.path, env: { PETSTORE_API_KEY: key, ...env }, args })
      expect((await server.fetch('/pets', key)).status).toBe(200)
      const seen = await encrypted()
      expect(seen.length).toBeGreaterThan(0)
      expect(seen).not.toContain(false)
    })
  })
})
