import { afterAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { openApiDocument } from '../../src/http/openapi.ts'
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

interface Schema {
  readonly type?: string
  readonly enum?: readonly string[]
  readonly $ref?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly not?: { readonly pattern: string }
  readonly minimum?: number
  readonly maximum?: number
}

const resolved = (schema: Schema): Schema => (schema.$ref ? (schemas.PetStatus as Schema) : schema)

/** JSON text of values that a schema allows. */
function allowed(given: Schema): fc.Arbitrary<string> {
  const schema = resolved(given)
  if (schema.enum) return fc.constantFrom(...schema.enum.map(value => JSON.stringify(value)))
  if (schema.type === 'integer') {
    const min = BigInt(schema.minimum ?? -(2n ** 63n))
    const max = BigInt(schema.maximum ?? 2n ** 63n - 1n)
    return fc.bigInt({ min, max }).map(String)
  }
  const matches = (text: string) =>
    new RegExp(schema.pattern ?? '', 'u').test(text) && !(schema.not && new RegExp(schema.not.pattern, 'u').test(text))
  const length = { minLength: schema.minLength ?? 0, maxLength: Math.min(schema.maxLength ?? 100, 100) }
  return fc
    .string({ unit: 'grapheme', ...length })
    .filter(matches)
    .map(text => JSON.stringify(text))
}

/** JSON text of values that it does not allow: of another type, and beyond each of its bounds. */
function forbidden(given: Schema): fc.Arbitrary<string> {
  const schema = resolved(given)
  const others = ['null', 'true', '[]', '{}', schema.type === 'integer' ? '"1"' : '1', '1.5']
  const beyond = [
    ...(schema.type === 'integer' ? [String(2n ** 63n), String(-(2n ** 63n) - 1n)] : []),
    ...(schema.minLength ? ['""'] : []),
    ...(schema.maxLength ? [JSON.stringify('x'.repeat(schema.maxLength + 1))] : []),
    ...(schema.pattern ? ['"   "'] : []),
    ...(schema.not ? ['"a\\u0000b"', '"\\ud800"'] : []),
    ...(schema.enum ? ['"nonsense"', '""'] : []),
  ]
  return fc.constantFrom(...others, ...beyond)
}

const { properties, required } = schemas.NewPet
const fields = Object.entries(properties as Record<string, Schema>)
type Parts = Readonly<Record<string, string | undefined>>
const jsonOf = (parts: Parts) => {
  const sent = Object.entries(parts).filter(([, value]) => value !== undefined)
  return `{${sent.map(([name, value]) => `"${name}":${value}`).join(',')}}`
}
const post = (parts: Parts) => service.call('/v1/pets', { method: 'POST', body: jsonOf(parts) })
const valid = fc.record(Object.fromEntries(fields.map(([name, schema]) => [name, allowed(schema)])))

describe('requests generated from the document', () => {
  test('are accepted if it allows them, and come back as they were sent', async () => {
    await fc.assert(
      fc.asyncProperty(valid, fc.boolean(), async (parts, withStatus) => {
        const sent = withStatus ? parts : { ...parts, status: undefined }
        const { status, text, headers } = await post(sent)
        expect(status).toBe(201)
        const location = headers.get('location') ?? ''
        expect(text).toBe(`{"id":${location.split('/').at(-1)},${jsonOf(sent).slice(1)}`)
        expect((await service.call(location)).text).toBe(text)
      }),
      { numRuns: 100 },
    )
  })

  test.each(fields)('are refused if %s is not as it says', async (name, schema) => {
    await fc.assert(
      fc.asyncProperty(valid, forbidden(schema), async (parts, wrong) => {
        const { status, json } = await post({ ...parts, [name]: wrong })
        expect([wrong, status]).toEqual([wrong, 400])
        expect(json.message).toContain(name)
      }),
      { numRuns: 50 },
    )
  })

  test.each([...required])('are refused if %s is missing, because it is required', async name => {
    await fc.assert(
      fc.asyncProperty(valid, async parts => {
        expect((await post({ ...parts, [name]: undefined })).status).toBe(400)
      }),
      { numRuns: 20 },
    )
  })

  const { parameters } = document.paths['/pets'].get
  const query = parameters.flatMap(parameter =>
    parameter.in === 'query' && parameter.name !== 'cursor'
      ? [[parameter.name, parameter.schema as Schema] as const]
      : [],
  )

  test.each(query)('are accepted and refused by the parameter %s as it says', async (name, schema) => {
    const asked = async (value: string) =>
      (await service.call(`/v1/pets?${name}=${encodeURIComponent(JSON.parse(value))}`)).status
    await fc.assert(
      fc.asyncProperty(allowed(schema), async value => {
        expect([value, await asked(value)]).toEqual([value, 200])
      }),
      { numRuns: 50 },
    )
    const { minimum, maximum } = resolved(schema)
    const outside = minimum === undefined ? ['"lost"', '""'] : [`${minimum - 1}`, `${(maximum ?? 0) + 1}`, '"x"', '1.5']
    for (const value of outside) expect([value, await asked(value)]).toEqual([value, 400])
  })
})

const runs = { numRuns: 200 }

/** `call` itself throws for a response that the OpenAPI document does not describe. */
const answered = async (path: string, allowed: readonly number[], init: CallInit = {}) =>
  expect(allowed).toContain((await service.call(path, init)).status)

describe('generated requests never get an undocumented response', () => {
  test('bodies', async () => {
    const asText = (value: unknown) =>
      JSON.stringify(value, (_key, inner) => (typeof inner === 'bigint' ? String(inner) : inner)) ?? ''
    const body = fc.oneof(
      fc.json(),
      fc.string({ unit: 'binary' }),
      fc.uint8Array({ maxLength: 200 }).map(bytes => new Uint8Array(bytes)),
      fc
        .record({ name: fc.anything(), categoryId: fc.anything(), status: fc.anything() }, { requiredKeys: [] })
        .map(asText),
      fc
        .tuple(fc.string(), fc.bigInt(), fc.string())
        .map(([name, id, rest]) => `{"name":${JSON.stringify(name)},"categoryId":${id}${rest}}`),
    )
    const send = (body: string | Uint8Array<ArrayBuffer>) => answered('/v1/pets', [201, 400], { method: 'POST', body })
    await fc.assert(fc.asyncProperty(body, send), { numRuns: 400 })
  })

  test('queries', async () => {
    const name = fc.oneof(fc.constantFrom('limit', 'status', 'cursor'), fc.string())
    const value = fc.oneof(
      fc.string({ unit: 'binary' }).map(text => text.toWellFormed()),
      fc.integer().map(String),
      fc.constantFrom('sold', ''),
    )
    const query = fc.oneof(
      fc
        .array(fc.tuple(name, value), { maxLength: 5 })
        .map(pairs => pairs.map(pair => pair.map(encodeURIComponent).join('=')).join('&')),
      fc.string({ unit: fc.constantFrom(...'limtsaucor=&%0123456789+;[]?/') }),
    )
    const send = (text: string, strict: boolean) =>
      answered(`/v1/pets?${text}`, [200, 400], { headers: strict ? { prefer: 'handling=strict' } : {} })
    await fc.assert(fc.asyncProperty(query, fc.boolean(), send), { numRuns: 400 })
  })

  test('paths', async () => {
    const segment = fc.oneof(
      fc.string({ unit: 'binary' }).map(text => encodeURIComponent(text.toWellFormed())),
      fc.bigInt().map(String),
      fc.constantFrom('pets', '..', '.', '', '%', '%2e'),
    )
    const send = (segments: readonly string[]) => answered(`/v1/${segments.join('/')}`, [200, 404])
    await fc.assert(fc.asyncProperty(fc.array(segment, { maxLength: 4 }), send), runs)
  })

  test('credentials', async () => {
    const header = fc.oneof(
      fc.string().map(text => `Bearer ${text}`),
      fc.string(),
      fc.string({ minLength: 36, maxLength: 36 }).map(text => `Bearer pets_${text}`),
    )
    const send = (authorization: string) => answered('/v1/pets', [401], { key: null, headers: { authorization } })
    await fc.assert(fc.asyncProperty(header, send), runs)
  })
})
