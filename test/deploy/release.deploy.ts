import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { downloadMs, network, projectFolder, readOutput, temporaryFolder } from '../support/process.ts'

type Workflow = Readonly<{ jobs: { build: { steps: { run?: string }[] } } }>

test("the release's workflow builds the packages, an executable that runs and a bill of materials", async () => {
  using folder = temporaryFolder()
  const clone = join(folder.path, 'petstore')
  const tag = `v${manifest.version}`
  const shell = (command: string, cwd = clone) =>
    readOutput(['bash', '-euc', command], { cwd, env: { ...network, GITHUB_REF_NAME: tag }, waitMs: downloadMs })
  await shell(`git -c safe.directory='*' clone -q '${projectFolder}' petstore`, folder.path)
  await shell(`cp -al '${projectFolder}/node_modules' .`)
  await shell("sed -i 's/ - unreleased$/ - 2030-01-31/' CHANGELOG.md")
  const workflow = Bun.YAML.parse(await Bun.file(join(clone, '.github/workflows/release.yml')).text()) as Workflow
  const [build = 'false'] = workflow.jobs.build.steps.flatMap(({ run }) => run ?? [])
  await shell(build)

  const name = `petstore-${manifest.version}`
  const archive = `${name}-${process.platform}-${process.arch}.tar.gz`
  const release = join(clone, 'release')
  const files = [archive, `${name}.sbom.json`, `${name}.tgz`, `petstore-client-${manifest.version}.tgz`]
  expect(readdirSync(release).toSorted()).toEqual(files.toSorted())
  const bill = await Bun.file(join(release, `${name}.sbom.json`)).json()
  expect(bill.components).toContainEqual(expect.objectContaining({ name: 'bun', version: manifest.dependencies.bun }))
  const printed = await shell(`tar -xf ${archive} && ./petstore --version`, release)
  expect(printed).toStartWith(`petstore ${manifest.version} (commit `)
})
