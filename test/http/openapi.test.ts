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

type Schema = Partial<{
  type: string
  enum: readonly string[]
  $ref: string
  pattern: string
  not: { readonly pattern: string }
}> &
  Partial<Record<'minLength' | 'maxLength' | 'minimum' | 'maximum', number>>

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
  const texts = fc.string({ unit: 'grapheme', ...length }).filter(matches)
  return texts.map(text => JSON.stringify(text))
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
const check = <T>(values: fc.Arbitrary<T>, numRuns: number, run: (value: T) => Promise<unknown>) =>
  fc.assert(
    fc.asyncProperty(values, async value => void (await run(value))),
    { numRuns },
  )
const valid = fc.record(Object.fromEntries(fields.map(([name, schema]) => [name, allowed(schema)])))

describe('requests generated from the document', () => {
  test('are accepted if it allows them, and come back as they were sent', () =>
    check(fc.tuple(valid, fc.boolean()), 100, async ([parts, withStatus]) => {
      const sent = withStatus ? parts : { ...parts, status: undefined }
      const { status, text, headers } = await post(sent)
      expect(status).toBe(201)
      const location = headers.get('location') ?? ''
      expect(text).toBe(`{"id":${location.split('/').at(-1)},${jsonOf(sent).slice(1)}`)
      expect((await service.call(location)).text).toBe(text)
    }))

  test.each(fields)('are refused if %s is not as it says', (name, schema) =>
    check(fc.tuple(valid, forbidden(schema)), 50, async ([parts, wrong]) => {
      const { status, json } = await post({ ...parts, [name]: wrong })
      expect([wrong, status]).toEqual([wrong, 400])
      expect(json.message).toContain(name)
    }),
  )

  test.each([...required])('are refused if %s is missing, because it is required', name =>
    check(valid, 20, async parts => expect((await post({ ...parts, [name]: undefined })).status).toBe(400)),
  )

  const { parameters } = document.paths['/pets'].get
  const query = parameters
    .filter(parameter => parameter.in === 'query' && parameter.name !== 'cursor')
    .map(({ name, schema }) => [name, schema as Schema] as const)

  test.each(query)('are accepted and refused by the parameter %s as it says', async (name, schema) => {
    const asked = async (value: string) =>
      (await service.call(`/v1/pets?${name}=${encodeURIComponent(JSON.parse(value))}`)).status
    await check(allowed(schema), 50, async value => expect([value, await asked(value)]).toEqual([value, 200]))
    const { minimum, maximum } = resolved(schema)
    const outside = minimum === undefined ? ['"lost"', '""'] : [`${minimum - 1}`, `${(maximum ?? 0) + 1}`, '"x"', '1.5']
    for (const value of outside) expect([value, await asked(value)]).toEqual([value, 400])
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
