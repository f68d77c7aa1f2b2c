import { expect } from 'bun:test'
import { setTestLimit, test } from '../support/test.ts'
import { newWorkFolder, shell } from './shell.ts'

setTestLimit(60_000)

const folder = await newWorkFolder('spectral')

test('Spectral finds nothing in the document', async () => {
  expect(await shell('spectral lint --format json --quiet --fail-severity hint openapi.json', folder)).toBe('[]')
})

test('swagger-parser validates the document', async () => {
  const validate = `require('@apidevtools/swagger-parser').validate('openapi.json').then(({ info }) => console.log(info.title))`
  expect(await shell(`node -e "${validate}"`, folder)).toBe('Pet store\n')
})
