import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { petstore } from '../support/process.ts'
import { generatorsFolder } from './clients.ts'
import { shell } from './shell.ts'

setDefaultTimeout(60_000)

const folder = join(generatorsFolder, 'work/document')

beforeAll(async () => {
  mkdirSync(folder, { recursive: true })
  const { stdout } = await petstore(['openapi'], { cwd: folder })
  writeFileSync(join(folder, 'openapi.json'), stdout)
  writeFileSync(join(folder, '.spectral.json'), '{ "extends": "spectral:oas" }')
})

test('Spectral finds nothing in the document', async () => {
  expect(await shell('spectral lint --format json --quiet --fail-severity hint openapi.json', folder)).toBe('[]')
})

test('swagger-parser validates the document', async () => {
  const validate = `require('@apidevtools/swagger-parser').validate('openapi.json').then(({ info }) => console.log(info.title))`
  expect(await shell(`node -e "${validate}"`, folder)).toBe('Pet store\n')
})
