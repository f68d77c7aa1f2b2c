import { afterAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { int64 } from '../../src/field.ts'
import { openApiDocument } from '../../src/http/openapi.ts'
import { idempotencyKey } from '../../src/http/request.ts'
import { int64Max, int64Min } from '../../src/int64.ts'
import { cursorFor, pageLimit } from '../../src/page.ts'
import { petName, petStatus } from '../../src/pet.ts'
import { projectFolder, run, temporaryFolder } from '../support/process.ts'
import { type CallInit, startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const document = openApiDocument({})
const { schemas } = document.components

test('the OpenAPI document passes the recommended rules of Redocly', async () => {
  using folder = temporaryFolder()
  const { text } = await service.call('/openapi.json', { key: null })
  writeFileSync(join(folder.path, 'openapi.json'), text)
  const lint = [join(projectFolder, 'node_modules/.bin/redocly'), 'lint', '--extends=recommended', 'openapi.json']
  const env = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' }
  const { exitCode, stdout, stderr } = await run(lint, { cwd: folder.path, env })
  expect([exitCode, stdout + stderr]).toEqual([0, expect.stringContaining('is valid')])
  expect(stdout + stderr).not.toMatch(/\d+ (warning|error)/)
}, 60_000)

// Unit tests show that each field reads the values that its schema allows, and no others.
test('the document publishes the rules by which requests are read', () => {
  const status = { $ref: '#/components/schemas/PetStatus' }
  expect(schemas.PetStatus).toMatchObject(petStatus.schema)
  const properties = { name: petName.schema, categoryId: int64.schema, status }
  expect(schemas.NewPet).toMatchObject({ type: 'object', required: ['name', 'categoryId'], properties })
  const { '/pets': list, '/pets/{petId}': one } = document.paths
  const parameters = [...list.get.parameters, ...list.post.parameters, ...one.get.parameters]
  expect(Object.fromEntries(parameters.map(({ name, schema }) => [name, schema]))).toMatchObject({
    limit: pageLimit.schema,
    status,
    cursor: cursorFor(undefined).schema,
    'Idempotency-Key': idempotencyKey.schema,
    petId: int64.schema,
  })
})

const check = <T>(values: fc.Arbitrary<T>, numRuns: number, run: (value: T) => Promise<unknown>) =>
  fc.assert(
    fc.asyncProperty(values, async value => void (await run(value))),
    { numRuns },
  )

test('generated animals come back exactly as they were sent', () => {
  const names = fc.string({ unit: 'grapheme', minLength: 1 }).filter(name => petName.read(name) !== undefined)
  const numbers = fc.bigInt({ min: int64Min, max: int64Max })
  const statuses = fc.constantFrom('', ',"status":"available"', ',"status":"pending"', ',"status":"sold"')
  return check(fc.tuple(names, numbers, statuses), 100, async ([name, categoryId, status]) => {
    const fields = `"name":${JSON.stringify(name)},"categoryId":${categoryId}${status}}`
    const created = await service.call('/v1/pets', { method: 'POST', body: `{${fields}` })
    const location = created.headers.get('location') ?? ''
    const pet = `{"id":${location.split('/').at(-1)},${fields}`
    expect([created.status, created.text, (await service.call(location)).text]).toEqual([201, pet, pet])
  })
})

/** `call` itself throws for a response that the OpenAPI document does not describe. */
const answered = async (path: string, allowed: readonly number[], init: CallInit = {}) =>
  expect(allowed).toContain((await service.call(path, init)).status)

describe('generated requests never get an undocumented response', () => {
  test('bodies', () => {
    const asText = (value: unknown) =>
      JSON.stringify(value, (_key, inner) => (typeof inner === 'bigint' ? String(inner) : inner)) ?? ''
    const any = fc.anything()
    const bodies = fc.oneof(
      fc.json(),
      fc.string({ unit: 'binary' }),
      fc.uint8Array({ maxLength: 200 }).map(bytes => new Uint8Array(bytes)),
      fc.record({ name: any, categoryId: any, status: any }, { requiredKeys: [] }).map(asText),
      fc
        .tuple(fc.string(), fc.bigInt(), fc.string())
        .map(([name, id, rest]) => `{"name":${JSON.stringify(name)},"categoryId":${id}${rest}}`),
    )
    return check(bodies, 400, body => answered('/v1/pets', [201, 400], { method: 'POST', body }))
  })

  test('queries', () => {
    const name = fc.oneof(fc.constantFrom('limit', 'status', 'cursor'), fc.string())
    const binary = fc.string({ unit: 'binary' }).map(text => text.toWellFormed())
    const value = fc.oneof(binary, fc.integer().map(String), fc.constantFrom('sold', ''))
    const queries = fc.oneof(
      fc
        .array(fc.tuple(name, value), { maxLength: 5 })
        .map(pairs => pairs.map(pair => pair.map(encodeURIComponent).join('=')).join('&')),
      fc.string({ unit: fc.constantFrom(...'limtsaucor=&%0123456789+;[]?/') }),
    )
    const headers = fc.constantFrom({}, { prefer: 'handling=strict' })
    return check(fc.tuple(queries, headers), 400, ([text, headers]) =>
      answered(`/v1/pets?${text}`, [200, 400], { headers }),
    )
  })

  test('paths', () => {
    const segment = fc.oneof(
      fc.string({ unit: 'binary' }).map(text => encodeURIComponent(text.toWellFormed())),
      fc.bigInt().map(String),
      fc.constantFrom('pets', '..', '.', '', '%', '%2e'),
    )
    const paths = fc.array(segment, { maxLength: 4 })
    return check(paths, 200, segments => answered(`/v1/${segments.join('/')}`, [200, 404]))
  })

  test('credentials', () => {
    const credentials = fc.oneof(
      fc.string().map(text => `Bearer ${text}`),
      fc.string(),
      fc.string({ minLength: 36, maxLength: 36 }).map(text => `Bearer pets_${text}`),
    )
    return check(credentials, 200, authorization =>
      answered('/v1/pets', [401], { key: null, headers: { authorization } }),
    )
  })
})
