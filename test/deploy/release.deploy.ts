import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { network, projectFolder, readOutput, temporaryFolder } from '../support/process.ts'

setDefaultTimeout(120_000)

test('two builds of a release give the same packages, executable, checksums and bill of materials', async () => {
  using folder = temporaryFolder()
  const clone = join(folder.path, 'petstore')
  const shell = (command: string, cwd = clone) =>
    readOutput(['bash', '-euc', command], { cwd, env: network, waitMs: 60_000 })
  const git = "git -c safe.directory='*'"
  await shell(`${git} clone -q '${projectFolder}' petstore`, folder.path)
  await shell(`cp -al '${projectFolder}/node_modules' .`)
  await shell(`sed -i 's/ - unreleased$/ - 2030-01-31/; /published yet/d' $(${git} ls-files '*.md')`)
  await shell(`${git} -c user.name=Ada -c user.email=ada@example.com commit -q --allow-empty --all -m Release`)
  await shell(`${git} tag --force v${manifest.version}`)

  const release = join(clone, 'dist/release')
  const build = async () => {
    await shell('npm run release')
    return await Bun.file(join(release, 'SHA256SUMS')).text()
  }
  const sums = await build()
  expect(await build()).toBe(sums)
  await shell('sha256sum -c --quiet SHA256SUMS', release)
  const name = `petstore-${manifest.version}`
  const archive = `${name}-${process.platform}-${process.arch}.tar.gz`
  const files = [archive, `${name}.sbom.json`, `${name}.tgz`, `petstore-client-${manifest.version}.tgz`, 'SHA256SUMS']
  expect(readdirSync(release).toSorted()).toEqual(files.toSorted())

  const bill = await Bun.file(join(release, `${name}.sbom.json`)).json()
  const metadata = { component: { name: 'petstore', version: manifest.version } }
  expect(bill).toMatchObject({ bomFormat: 'CycloneDX', metadata })
  const { bun } = manifest.dependencies
  expect(bill.components).toContainEqual(expect.objectContaining({ name: 'bun', version: bun }))
  expect(JSON.stringify(bill)).not.toContain(folder.path)
  const commit = (await shell(`${git} rev-parse --short=7 HEAD`)).trim()
  const printed = await shell(`tar -xf ${archive} && ./petstore --version`, release)
  expect(printed).toStartWith(`petstore ${manifest.version} (commit ${commit}, `)
})
