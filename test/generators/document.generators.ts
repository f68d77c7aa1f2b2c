import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { operations } from '../../src/http/operations.ts'
import { startService } from '../http/service.ts'
import { isSkipped, newWorkFolder, shell } from './shell.ts'

setDefaultTimeout(900_000)

test('Spectral finds nothing in the OpenAPI document', async () => {
  const folder = await newWorkFolder('spectral')
  expect(await shell('spectral lint --format json --quiet --fail-severity hint openapi.json', folder)).toBe('[]')
})

describe.skipIf(isSkipped('schemathesis (Python)', ['python3']))('schemathesis', () => {
  test('finds nothing that differs from the OpenAPI document', async () => {
    const folder = await newWorkFolder('schemathesis')
    await shell('python3 -m venv .venv; pip install -q -r requirements.txt', folder)
    await using service = await startService()
    const env = { PETSTORE_URL: `${service.origin}/v1`, PETSTORE_KEY: service.key }
    await shell('st run openapi.json --checks all --no-color --report json --report-json-path report.json', folder, env)

    const ids = Object.keys(operations)
    const report = await Bun.file(join(folder, 'report.json')).json()
    const passed = { status: 'success' }
    expect(report).toMatchObject({
      complete: true,
      operations: { total: ids.length, tested: ids.length },
      phases: { examples: passed, coverage: passed, fuzzing: passed, stateful: passed },
      failures: [],
    })
    expect(report.test_cases.generated).toBeGreaterThan(500)
  })
})
