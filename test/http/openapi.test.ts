import { afterAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { int64 } from '../../src/field.ts'
import { openApiDocument } from '../../src/http/openapi.ts'
import { idempotencyKey } from '../../src/http/pets.ts'
import { json } from '../../src/http/response.ts'
import { cursorFor, pageLimit } from '../../src/page.ts'
import { petName, petStatus } from '../../src/pet.ts'
import { expectDescribed } from '../support/described.ts'
import { projectFolder, run, temporaryFolder } from '../support/process.ts'
import { startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const document = openApiDocument([])
const { schemas, parameters, headers, responses } = document.components
const operations = [document.paths['/pets'].get, document.paths['/pets'].post, document.paths['/pets/{petId}'].get]

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
  expect(parameters).toMatchObject({
    limit: { schema: pageLimit.schema },
    status: { schema: status },
    cursor: { schema: cursorFor(undefined).schema },
    petId: { schema: int64.schema, required: true },
    'Idempotency-Key': { schema: idempotencyKey.schema },
  })
  const inQuery = Object.values(parameters).flatMap(({ name, in: place }) => (place === 'query' ? [name] : []))
  expect(inQuery).toEqual(['limit', 'status', 'cursor'])
  const { petId, Prefer, 'Idempotency-Key': key } = parameters
  expect([petId.in, key.in, Prefer.in]).toEqual(['path', 'header', 'header'])
  expect(cursorFor('available').read(String((parameters.cursor.schema['examples'] as string[])[0]))).toBe(20n)
  expect(document.paths['/pets'].post.requestBody.required).toBe(true)
  expect(document.security).toEqual([{ bearerAuth: [] }])
  expect(document.components.securitySchemes.bearerAuth).toMatchObject({ type: 'http', scheme: 'bearer' })
  expect(schemas.Pet).toMatchObject({ required: ['id', 'name', 'categoryId'], properties: { id: int64.schema } })
  expect(schemas.Error).toMatchObject({ required: ['code', 'message', 'status'] })
})

describe('a generated client', () => {
  const objectsIn = (value: unknown): Record<string, unknown>[] =>
    typeof value === 'object' && value !== null
      ? [value as Record<string, unknown>, ...Object.values(value).flatMap(objectsIn)]
      : []

  test('accepts responses with later additions', () => {
    const described = [schemas.Pet, schemas.Error, ...operations.flatMap(objectsIn), ...objectsIn(responses)]
    expect(described.filter(part => 'additionalProperties' in part)).toEqual([])
    expect(schemas.Pet.properties.name).toMatchObject({ type: 'string' })
    for (const keyword of ['pattern', 'minLength', 'maxLength', 'enum']) {
      expect(schemas.Pet.properties.name).not.toContainKey(keyword)
      expect(schemas.Error.properties.code).not.toContainKey(keyword)
    }
    const { description, 'x-extensible-enum': codes } = schemas.Error.properties.code
    for (const code of codes) {
      expect(description).toContain(code)
      expect(JSON.stringify(responses)).toContain(`\`${code}\``)
    }
    for (const header of Object.values(headers)) expect(header).not.toContainKey('required')
  })

  test('gets patterns in the syntax that all languages share', () => {
    const patterns = objectsIn(document).flatMap(({ pattern }) => (typeof pattern === 'string' ? [pattern] : []))
    expect(patterns).toHaveLength(2)
    // No look-around, no back-reference, no \0, no \u.
    for (const pattern of patterns) expect(pattern).not.toMatch(/\(\?[^:]|\\[0-9uUpPkK]/)
    expect(objectsIn(document).filter(part => 'not' in part)).toEqual([])
  })

  test('has a method for each operation, with these parameters and responses', () => {
    const common = ['401', '403', '429', '503', 'default']
    const names = (refs: readonly { $ref: string }[]) => refs.map(({ $ref }) => $ref.split('/').at(-1))
    const found = operations.map(one => [one.operationId, names(one.parameters), Object.keys(one.responses)] as const)
    expect(found).toEqual([
      ['listPets', ['limit', 'status', 'cursor', 'Prefer'], ['200', ...common]],
      ['createPet', ['Idempotency-Key', 'Prefer'], ['201', '400', ...common.slice(0, 2), '422', ...common.slice(2)]],
      ['getPet', ['petId', 'Prefer'], ['200', ...common.slice(0, 2), '404', ...common.slice(2)]],
    ])
  })

  test('has a description of every part, and an example of every value', () => {
    const { PetStatus, NewPet, Pet, Pets, Error: error } = schemas
    // A reference to PetStatus has no description of its own.
    const properties = [NewPet, Pet, error].flatMap(({ properties }) => Object.values<object>(properties))
    const inlineResponses = operations.flatMap(({ responses }) =>
      Object.values<object>(responses).filter(response => !('$ref' in response)),
    )
    const values: object[] = [PetStatus, Pets, ...properties.filter(part => !('$ref' in part))]
    const carriers = [...Object.values(parameters), ...Object.values(headers)]
    const parts = [...values, NewPet, Pet, error, ...carriers, ...Object.values(responses), ...inlineResponses]
    for (const part of [...parts, ...operations, ...document.tags]) {
      expect(part).toEqual(expect.objectContaining({ description: expect.stringMatching(/^\S.*\.$/) }))
    }
    for (const value of values) expect(value).toContainKey('examples')
    for (const carrier of carriers)
      expect('example' in carrier || 'examples' in carrier.schema || '$ref' in carrier.schema).toBe(true)
    for (const header of Object.values(headers)) expect(header.schema).toContainKey('type')
    expect(JSON.stringify(document)).toContain(`"categoryId":${2n ** 53n + 2n}`)
  })
})

describe('the check of every response in these tests', () => {
  const pet = { id: 1, name: 'Rex', categoryId: 7 }
  const location = { location: '/v1/pets/1' }
  const asText = { 'content-type': 'text/plain' }
  const post = (status: number, given: Record<string, string>, body: object) => {
    const headers = { ...Object.fromEntries(json(status, '').headers), 'x-request-id': '1', ...given }
    return () => expectDescribed('POST', '/v1/pets', new Response(null, { status, headers }), JSON.stringify(body))
  }

  test.each([
    ['another status', 202, location, pet, 'status 202 is not described'],
    ['a missing header', 201, {}, pet, 'missing: location'],
    ['an undescribed header', 201, { ...location, etag: '1' }, pet, 'not described: etag'],
    ['another media type', 201, { ...location, ...asText }, pet, 'the header content-type is text/plain'],
    ['a missing property', 201, location, { id: 1, name: 'Rex' }, "must have required property 'categoryId'"],
    ['a further property', 201, location, { ...pet, colour: 'red' }, 'must NOT have additional properties'],
    ['an unknown code', 400, {}, { code: 'odd', message: '', status: 400 }, 'the code odd is not published'],
    ['the code of another status', 400, {}, { code: 'rate_limited', message: '', status: 400 }, 'does not list'],
    ['another status in the Error', 400, {}, { code: 'invalid_json', message: '', status: 500 }, 'status is 500'],
  ])('notices %s', (_what, status, headers, body, problem) => {
    expect(post(status, headers, body)).toThrow(problem)
  })
})

/** The service itself compares its responses with the OpenAPI document. */
function expectAnswered<T>(
  values: fc.Arbitrary<T>,
  statuses: readonly number[],
  send: (value: T) => Promise<{ status: number }>,
) {
  const answered = fc.asyncProperty(values, async value => expect(statuses).toContain((await send(value)).status))
  return fc.assert(answered, { numRuns: 400 })
}

describe('generated requests never get an undocumented response', () => {
  test('bodies', () => {
    const any = fc.jsonValue()
    const bodies = fc.oneof(
      fc.json(),
      fc.string({ unit: 'binary' }),
      fc.uint8Array({ maxLength: 200 }).map(bytes => new Uint8Array(bytes)),
      fc.record({ name: any, categoryId: any, status: any }, { requiredKeys: [] }).map(pet => JSON.stringify(pet)),
      fc.tuple(fc.bigInt(), fc.string()).map(([id, rest]) => `{"name":"Rex","categoryId":${id}${rest}}`),
    )
    return expectAnswered(bodies, [201, 400], body => service.call('/v1/pets', { method: 'POST', body }))
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
    const sent = fc.tuple(queries, headers)
    return expectAnswered(sent, [200, 400], ([text, headers]) => service.call(`/v1/pets?${text}`, { headers }))
  })

  test('paths', () => {
    const segment = fc.oneof(
      fc.string({ unit: 'binary' }).map(text => encodeURIComponent(text.toWellFormed())),
      fc.bigInt().map(String),
      fc.constantFrom('pets', '..', '.', '', '%', '%2e'),
    )
    const paths = fc.array(segment, { maxLength: 4 })
    return expectAnswered(paths, [200, 404], segments => service.call(`/v1/${segments.join('/')}`))
  })
})
