import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { programs as findPrograms, skipped } from '../support/debian.ts'
import { inspectStore } from '../support/load.ts'
import { freePort, readProjectFile, type Server, temporaryFolder } from '../support/process.ts'
import { filesOf, importImage, nodeContent, writeNpmSettings } from './images.ts'
import { Podman, runFlags } from './podman.ts'

const programs =
  process.getuid?.() === 0
    ? await findPrograms('the tests of the container', { podman: 'podman', crun: 'crun' })
    : skipped('the tests of the container need root')

type Service = Readonly<Record<'cap_drop' | 'security_opt', readonly string[]>> & {
  readonly stop_grace_period: string
  readonly read_only: boolean
}

const compose = Bun.YAML.parse(readProjectFile('compose.yaml')) as { services: Record<'petstore-1', Service> }
const instance = compose.services['petstore-1']

/** The restrictions of compose.yaml as options of podman. */
const restrictions = [
  ...(instance.read_only ? ['--read-only', '--read-only-tmpfs=false'] : []),
  ...instance.cap_drop.map(each => `--cap-drop=${each}`),
  ...instance.security_opt.map(each => `--security-opt=${each.replace(/:true$/, '')}`),
]
const graceSeconds = Number.parseInt(instance.stop_grace_period, 10)
const { version } = JSON.parse(readProjectFile('package.json'))
const image = 'petstore'

setDefaultTimeout(300_000)

describe.skipIf(!programs)('the container image', () => {
  let podman: Podman

  beforeAll(async () => {
    podman = new Podman(programs?.podman ?? '')
    using folder = temporaryFolder()
    const npmrc = join(folder.path, 'npmrc')
    await importImage(podman, 'node', await nodeContent(...(await writeNpmSettings(npmrc))))
    await importImage(podman, 'base', { files: await filesOf('libc6') })
    const values = { BUILD_IMAGE: 'localhost/node', BASE_IMAGE: 'localhost/base', COMMIT: 'abc1234' }
    const options = Object.entries(values).map(([name, value]) => `--build-arg=${name}=${value}`)
    await podman.build(image, '.', `--secret=id=npmrc,src=${npmrc}`, '--file=Containerfile', ...options)
  })
  afterAll(() => podman?.[Symbol.asyncDispose]())

  const stop = async (name: string, server: Server) => {
    await podman.call('stop', `--time=${graceSeconds}`, name)
    return await server.ended()
  }
  const once = (...args: readonly string[]) => podman.try('run', '--rm', ...runFlags, ...args)
  const healthOn = (port: number) => once(`--env=PORT=${port}`, image, 'health')
  /** Before the first start, as documented: the container's log would store a key that the server prints. */
  const createKey = async (...flags: readonly string[]) => {
    const { exitCode, stdout } = await once(...restrictions, ...flags, image, 'keys', 'create', '--name=till')
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(/^pets_\w{36}\n$/) })
    return stdout.trimEnd()
  }

  test('adds only the executable and an empty /data to its base', async () => {
    const [{ Config: config }] = JSON.parse(await podman.call('image', 'inspect', image))
    const added = (await podman.call('image', 'diff', image, 'base')).split('\n').filter(line => line.startsWith('A '))
    expect(added.toSorted()).toEqual(['A /data', 'A /usr/local', 'A /usr/local/bin', 'A /usr/local/bin/petstore'])
    expect(config).toMatchObject({ User: '65532:65532', Volumes: { '/data': {} }, ExposedPorts: { '8080/tcp': {} } })
    const label = (name: string) => config.Labels[`org.opencontainers.image.${name}`]
    expect(['title', 'version', 'revision'].map(label)).toEqual(['petstore', version, 'abc1234'])
    expect((await once(image, '--version')).stdout).toStartWith(`petstore ${version} (commit abc1234,`)
  })

  test('serves from /data alone as process 1 without rights, stops cleanly on SIGTERM, and restores into a new volume', async () => {
    const port = freePort()
    const store = ['--volume=pets:/data', `--env=PORT=${port}`]
    const key = await createKey(...store)
    await using server = await podman.start('one', ...restrictions, ...store, image)
    expect(server.stdout).not.toContain('API key')

    const pid = await podman.call('inspect', '--format={{.State.Pid}}', 'one')
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    expect(status).toMatch(/^NSpid:.*\t1$/m)
    expect(status).toMatch(/^Uid:(\t65532){4}$/m)
    expect(status).toMatch(/^CapEff:\t0+$/m)
    expect(status).toMatch(/^NoNewPrivs:\t1$/m)
    expect(readFileSync(`/proc/${pid}/mounts`, 'utf8')).toMatch(/^\S+ \/ \S+ ro,/m)

    const animal = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }
    expect((await server.fetch('/pets', key, animal)).status).toBe(201)
    await podman.call('healthcheck', 'run', 'one')
    const probes = [...readProjectFile('deploy/kubernetes.yaml').matchAll(/Probe:\n +httpGet:.*\n +path: (.*)/g)]
    expect(probes).toHaveLength(2)
    for (const [, path = ''] of probes) expect((await fetch(new URL(path, server.url))).status).toBe(200)
    await podman.call('exec', 'one', 'petstore', 'backup', '/data/copy.db')
    const data = await podman.call('volume', 'inspect', '--format={{.Mountpoint}}', 'pets')
    expect(existsSync(join(data, 'petstore.db-wal'))).toBe(true)

    expect((await healthOn(port)).exitCode).toBe(0)
    expect((await stop('one', server)).exitCode).toBe(0)
    expect(await healthOn(port)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('does not answer') })
    expect(existsSync(join(data, 'petstore.db-wal'))).toBe(false)
    for (const file of ['petstore.db', 'copy.db']) {
      expect(inspectStore(join(data, file))).toEqual({ integrity: 'ok', animals: 1 })
    }
    const restored = await once(
      '--volume=pets:/old',
      '--volume=pets-2:/data',
      image,
      'restore',
      '--yes',
      '/old/copy.db',
    )
    expect(restored).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('\nRestored 1 animal\n') })
  })
})
