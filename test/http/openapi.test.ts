import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Permission } from '../../src/api-key.ts'
import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../../src/errors.ts'
import { int64 } from '../../src/field.ts'
import { openApiDocument } from '../../src/http/openapi.ts'
import { bodyBytesMax, type ErrorCode } from '../../src/http/operations.ts'
import { idempotencyKey } from '../../src/http/query.ts'
import { cursorSchema, pageLimit } from '../../src/page.ts'
import { petName, petStatus } from '../../src/pet.ts'
import type { PetStore } from '../../src/store-contract.ts'
import { advance, standingClock } from '../support/clock.ts'
import { engines } from '../support/engines.ts'
import { projectFolder, run, temporaryFolder } from '../support/process.ts'
import { createStream } from '../support/stream.ts'
import { describedCodes } from './described.ts'
import { type Service, startService } from './service.ts'

const document = openApiDocument([])
const { schemas, parameters, headers, responses } = document.components
const operations = Object.values(document.paths).flatMap(methods => Object.values(methods))

const objectsIn = (value: unknown): Record<string, unknown>[] =>
  typeof value === 'object' && value !== null
    ? [value as Record<string, unknown>, ...Object.values(value).flatMap(objectsIn)]
    : []

test('the OpenAPI document passes the recommended rules of Redocly', async () => {
  using folder = temporaryFolder()
  await using service = await startService()
  const { text } = await service.call('/openapi.json', { key: null })
  writeFileSync(join(folder.path, 'openapi.json'), text)
  const lint = [join(projectFolder, 'node_modules/.bin/redocly'), 'lint', '--extends=recommended', 'openapi.json']
  const env = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' }
  const { exitCode, stdout, stderr } = await run(lint, { cwd: folder.path, env })
  expect([exitCode, stdout + stderr]).toEqual([0, expect.stringContaining('is valid')])
  expect(stdout + stderr).not.toMatch(/\d+ (warning|error)/)
})

// Unit tests show that each field reads the values that its schema allows, and no others.
test('the document publishes the rules by which requests are read', () => {
  const status = { $ref: '#/components/schemas/PetStatus' }
  expect(schemas.PetStatus).toMatchObject(petStatus.schema)
  const properties = { name: petName.schema, categoryId: int64.schema, status }
  expect(schemas.NewPet).toMatchObject({ type: 'object', required: ['name', 'categoryId'], properties })
  expect(parameters).toMatchObject({
    limit: { in: 'query', schema: pageLimit.schema },
    status: { in: 'query', schema: status },
    petId: { in: 'path', schema: int64.schema, required: true },
    'Idempotency-Key': { in: 'header', schema: idempotencyKey.schema },
  })
  // A form that fills in examples would send the cursor of another list.
  expect<unknown>(parameters['cursor']?.schema).toEqual(cursorSchema)
  expect(parameters['cursor']).not.toContainKey('example')
  expect(document.paths['/pets']?.['post']?.requestBody?.required).toBe(true)
  expect(document.security).toEqual([{ bearerAuth: [] }])
  expect(schemas.Pet).toMatchObject({ required: ['id', 'name', 'categoryId'], properties: { id: int64.schema } })
})

test('every error code is described with its status, what it means, what to do, and whether to retry', () => {
  const described = Object.assign({}, ...objectsIn(document).map(part => part['x-error-codes']))
  const { 'x-extensible-enum': codes } = schemas.Error.properties.code
  expect(Object.keys(described).toSorted()).toEqual(codes.toSorted())
  const retried = codes.filter(code => described[code].retry)
  expect(retried).toEqual(['request_timeout', 'rate_limited', 'store_unavailable'])
  for (const response of objectsIn(document).filter(part => 'x-error-codes' in part)) {
    for (const code of Object.keys(response['x-error-codes'] as object)) {
      const { meaning, action } = described[code]
      expect(response['description']).toContain(`\`${code}\`: ${meaning} ${action}`)
    }
  }
})

test('a generated client accepts responses with later additions', () => {
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

describe.each(engines)('on %s', engine => {
  let service: Service
  beforeAll(async () => {
    service = await startService({ engine })
  })
  afterAll(() => service[Symbol.asyncDispose]())

  type Call = Parameters<Service['call']>[1] & { readonly path?: string; readonly query?: string }
  interface Cause extends Call {
    /** For a service of its own. */
    readonly parts?: Parameters<typeof startService>[0]
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
    return {
      ...reads,
      create: fail,
      createOnce: fail,
      update: fail,
      remove: fail,
      deleteExpiredIdempotencyKeys: fail,
    }
  }
  const environmentKey = 'key-of-the-environment'

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
    ids_exhausted: { parts: { pets: failing(new IdsExhausted('')) } },
    invalid_request: { query: '?unknown=1', headers: { prefer: 'handling=strict' } },
    invalid_cursor: { query: '?cursor=none' },
    pet_not_found: { path: '/v1/pets/-1' },
    status_changed: { query: '?status=sold', parts: {}, first: '{"name":"Rex","categoryId":7}' },
    missing_body: { body: '' },
    invalid_json: { body: '{' },
    // This key is not looked up: a database knows nothing of a clock that stands still.
    request_timeout: { parts: { environmentKey }, key: environmentKey },
    body_too_large: { body: ' '.repeat(bodyBytesMax + 1) },
    unsupported_media_type: { headers: { 'content-type': 'text/plain' } },
    unsupported_content_encoding: { headers: { 'content-encoding': 'gzip' } },
    idempotency_key_reused: { first: '{"name":"Mia","categoryId":7}', headers: { 'idempotency-key': 'order-1' } },
  }

  test.each(describedCodes)('%s sends the code that the document lists: %s', async (operationId, code) => {
    const { parts, permission, first, ...sent } = causes[code] ?? {}
    await using own = parts && (await startService({ engine, ...parts }))
    const target = own ?? service
    if (first !== undefined) await target.call('/v1/pets', { ...sent, method: 'POST', body: first })
    const key = permission && { key: await target.newKey({ permission }) }
    const isLate = code === 'request_timeout'
    const endless = isLate && { body: createStream([1], 'stalls') }
    const { path = '', query = '', ...init } = { ...requests[operationId], ...sent, ...key, ...endless }
    using _ = isLate ? standingClock() : undefined
    const answering = target.call(path + query, init)
    while (isLate && Bun.peek.status(answering) === 'pending') await advance(1_000)
    expect((await answering).json).toMatchObject({ code })
  })

  test('a removal with a body in chunks is answered like one without', async () => {
    const body = () => createStream(['{', '}'])
    const { headers } = await service.call('/v1/pets', { method: 'POST', body: '{"name":"Rex","categoryId":7}' })
    const path = headers.get('location') ?? ''
    const remove = async (query = '') => (await service.call(path + query, { method: 'DELETE', body: body() })).status
    expect([await remove('?status=lost'), await remove(), await remove()]).toEqual([400, 204, 404])
  })
})
