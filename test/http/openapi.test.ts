import { afterAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { Permission } from '../../src/api-key.ts'
import { StoreDamaged, StoreUnavailable } from '../../src/errors.ts'
import { int64 } from '../../src/field.ts'
import { openApiDocument } from '../../src/http/openapi.ts'
import { bodyBytesMax, type ErrorCode } from '../../src/http/operations.ts'
import { idempotencyKey } from '../../src/http/query.ts'
import { int64Max } from '../../src/int64.ts'
import { cursorSchema, pageLimit } from '../../src/page.ts'
import { petName, petStatus } from '../../src/pet.ts'
import type { PetStore } from '../../src/store-contract.ts'
import { advance, standingClock } from '../support/clock.ts'
import { projectFolder, run, temporaryFolder } from '../support/process.ts'
import { startService } from '../support/service.ts'
import { createStream } from '../support/stream.ts'
import { describedCodes } from './described.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const document = openApiDocument([])
const { schemas, parameters, headers, responses } = document.components
const operations = Object.values(document.paths).flatMap(methods => Object.values(methods))

const objectsIn = (value: unknown): Record<string, unknown>[] =>
  typeof value === 'object' && value !== null
    ? [value as Record<string, unknown>, ...Object.values(value).flatMap(objectsIn)]
    : []

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
    limit: { in: 'query', schema: pageLimit.schema },
    status: { in: 'query', schema: status },
    cursor: { in: 'query', schema: cursorSchema },
    petId: { in: 'path', schema: int64.schema, required: true },
    'Idempotency-Key': { in: 'header', schema: idempotencyKey.schema },
    Prefer: { in: 'header', schema: { type: 'string' } },
  })
  // A form that fills in examples would send the cursor of another list.
  expect(
    objectsIn(parameters['cursor'])
      .flatMap(Object.keys)
      .filter(name => /^example/.test(name)),
  ).toEqual([])
  expect(document.paths['/pets']?.['post']?.requestBody?.required).toBe(true)
  expect(document.security).toEqual([{ bearerAuth: [] }])
  expect(document.components.securitySchemes.bearerAuth).toMatchObject({ type: 'http', scheme: 'bearer' })
  expect(schemas.Pet).toMatchObject({ required: ['id', 'name', 'categoryId'], properties: { id: int64.schema } })
  expect(schemas.Error).toMatchObject({ required: ['code', 'message', 'status'] })
})

test('every error code is described with its status, what it means, what to do, and whether to retry', () => {
  const described = Object.assign({}, ...objectsIn(document).map(part => part['x-error-codes']))
  const { 'x-extensible-enum': codes } = schemas.Error.properties.code
  expect(Object.keys(described).toSorted()).toEqual(codes.toSorted())
  expect(described.store_unavailable).toEqual({
    status: 503,
    meaning: 'The store is unavailable.',
    action: 'Retry after the seconds in Retry-After. Repeat a creation with its Idempotency-Key.',
    retry: true,
  })
  const retried = codes.filter(code => described[code].retry)
  expect(retried).toEqual(['request_timeout', 'rate_limited', 'store_unavailable'])
  for (const response of objectsIn(document).filter(part => 'x-error-codes' in part)) {
    for (const code of Object.keys(response['x-error-codes'] as object)) {
      const { meaning, action } = described[code]
      expect(response['description']).toContain(`\`${code}\`: ${meaning} ${action}`)
    }
  }
})

describe('a generated client', () => {
  test('accepts responses with later additions', () => {
    const described = [schemas.Pet, schemas.Error, ...operations.flatMap(objectsIn), ...objectsIn(responses)]
    expect(described.filter(part => 'additionalProperties' in part)).toEqual([])
    expect(schemas.Pet.properties.name).toMatchObject({ type: 'string' })
    for (const keyword of ['pattern', 'minLength', 'maxLength', 'enum']) {
      expect(schemas.Pet.properties.name).not.toContainKey(keyword)
      expect(schemas.Error.properties.code).not.toContainKey(keyword)
    }
    const { description, 'x-extensible-enum': codes } = schemas.Error.properties.code
    for (const code of codes) expect(description).toContain(code)
    for (const header of Object.values(headers)) expect(header).not.toContainKey('required')
  })

  test('has a method for each operation, with these parameters and responses', () => {
    const names = (refs: readonly { $ref: string }[]) => refs.map(({ $ref }) => $ref.split('/').at(-1)).join(' ')
    const found = operations.map(one => [
      `${one.operationId}: ${names(one.parameters)}`,
      Object.keys(one.responses).join(' '),
    ])
    expect(found).toEqual([
      ['listPets: limit status cursor Prefer', '200 400 401 403 429 500 503 default'],
      ['createPet: Idempotency-Key Prefer', '201 400 401 403 408 413 415 422 429 500 503 default'],
      ['getPet: petId Prefer', '200 400 401 403 404 429 500 503 default'],
      ['updatePet: petId ifStatus Prefer', '200 400 401 403 404 408 409 413 415 429 500 503 default'],
      ['deletePet: petId ifStatus Prefer', '204 400 401 403 404 409 429 500 503 default'],
    ])
  })
})

describe('an operation sends every code that the document lists for it', () => {
  type Call = Parameters<typeof service.call>[1] & { readonly path?: string; readonly query?: string }
  interface Cause extends Call {
    /** For a service of its own. */
    readonly parts?: Parameters<typeof startService>[0]
    readonly lastId?: bigint
    readonly permission?: Permission
    /** The body of a creation that is sent first. */
    readonly first?: string
  }

  const requests: Readonly<Record<string, Call>> = {
    listPets: { path: '/v1/pets' },
    createPet: { path: '/v1/pets', method: 'POST', body: '{"name":"Rex","categoryId":7}' },
    getPet: { path: '/v1/pets/-1' },
    updatePet: { path: '/v1/pets/1', method: 'PATCH', body: '{}' },
    deletePet: { path: '/v1/pets/1', method: 'DELETE' },
  }
  const failing = (error: Error): PetStore => {
    const fail = () => Promise.reject(error)
    const reads = { list: fail, get: fail }
    return { ...reads, create: fail, createOnce: fail, update: fail, remove: fail, deleteExpiredIdempotencyKeys: fail }
  }
  const environmentKey = 'key-of-the-environment'
  const endless = () => new ReadableStream({ start: controller => controller.enqueue(new Uint8Array(1)) })

  /** What differs from a valid request. */
  const causes: Partial<Readonly<Record<ErrorCode, Cause>>> = {
    missing_api_key: { key: null },
    invalid_api_key: { key: 'pets_mistyped' },
    insufficient_permission: { permission: 'metrics' },
    read_only_key: { permission: 'read-only' },
    rate_limited: { parts: { rateLimit: { requests: 1, seconds: 60 } }, first: '' },
    internal_error: { parts: { pets: failing(new Error('a bug')) } },
    store_unavailable: { parts: { pets: failing(new StoreUnavailable('')) } },
    store_damaged: { parts: { pets: failing(new StoreDamaged('')) } },
    ids_exhausted: { parts: {}, lastId: int64Max },
    invalid_request: { query: '?unknown=1', headers: { prefer: 'handling=strict' } },
    invalid_cursor: { query: '?cursor=none' },
    pet_not_found: { path: '/v1/pets/-1' },
    status_changed: { query: '?status=sold', parts: {}, first: '{"name":"Rex","categoryId":7}' },
    missing_body: { body: '' },
    invalid_json: { body: '{' },
    // This key is not looked up: a database knows nothing of a clock that stands still.
    request_timeout: {
      parts: { environmentKey },
      key: environmentKey,
      get body() {
        return endless()
      },
    },
    body_too_large: { body: ' '.repeat(bodyBytesMax + 1) },
    unsupported_media_type: { headers: { 'content-type': 'text/plain' } },
    unsupported_content_encoding: { headers: { 'content-encoding': 'gzip' } },
    idempotency_key_reused: { first: '{"name":"Mia","categoryId":7}', headers: { 'idempotency-key': 'order-1' } },
  }

  const listed = describedCodes.flatMap(({ operationId, codes }) => codes.map(code => [operationId, code] as const))
  test.each(listed)('%s: %s', async (operationId, code) => {
    const { parts, lastId, permission, first, ...sent } = causes[code] ?? {}
    await using own = parts && (await startService(parts))
    const target = own ?? service
    if (lastId !== undefined) await own?.database.setLastId(lastId)
    if (first !== undefined) await target.call('/v1/pets', { ...sent, method: 'POST', body: first })
    const key = permission && { key: await target.newKey({ permission }) }
    const { path = '', query = '', ...init } = { ...requests[operationId], ...sent, ...key }
    using _ = code === 'request_timeout' ? standingClock() : undefined
    const answering = target.call(path + query, init)
    while (code === 'request_timeout' && Bun.peek.status(answering) === 'pending') await advance(1_000)
    expect((await answering).json).toMatchObject({ code })
  })
})

test.each([
  ['no body', () => undefined],
  ['a body', () => '{"status":"sold"}'],
  ['a body in chunks', () => createStream(['{', '}'])],
])('a removal with %s is answered like one without', async (_what, body) => {
  const { headers } = await service.call('/v1/pets', { method: 'POST', body: '{"name":"Rex","categoryId":7}' })
  const path = headers.get('location') ?? ''
  const statuses: number[] = []
  for (const target of [`${path}?status=lost`, path, path]) {
    statuses.push((await service.call(target, { method: 'DELETE', body: body() })).status)
  }
  expect(statuses).toEqual([400, 204, 404])
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
    const any = fc.jsonValue({ maxDepth: 2 })
    const bodies = fc.oneof(
      fc.json({ maxDepth: 2 }),
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
