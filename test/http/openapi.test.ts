import { afterAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { openApiDocument } from '../../src/http/openapi.ts'
import { projectFolder, run, temporaryFolder } from '../support/process.ts'
import { startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const document = openApiDocument({})
const { schemas } = document.components

test('the OpenAPI document passes the recommended rules of Redocly', async () => {
  using folder = temporaryFolder()
  const { text } = await service.call('/openapi.json', { key: null })
  writeFileSync(join(folder.path, 'openapi.json'), text)
  const lint = [
    join(projectFolder, 'node_modules/.bin/redocly'),
    'lint',
    '--extends=recommended',
    'openapi.json',
  ]
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
    new RegExp(schema.pattern ?? '', 'u').test(text) &&
    !(schema.not && new RegExp(schema.not.pattern, 'u').test(text))
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
const post = (parts: Record<string, string | undefined>) => {
  const sent = Object.entries(parts).flatMap(([name, value]) =>
    value === undefined ? [] : [`"${name}":${value}`],
  )
  return service.call('/v1/pets', { method: 'POST', body: `{${sent.join(',')}}` })
}
const valid = fc.record(Object.fromEntries(fields.map(([name, schema]) => [name, allowed(schema)])))

describe('requests generated from the document', () => {
  test('are accepted if it allows them', async () => {
    await fc.assert(
      fc.asyncProperty(valid, fc.boolean(), async (parts, withStatus) => {
        const { status } = await post(withStatus ? parts : { ...parts, status: undefined })
        expect(status).toBe(201)
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
    const outside =
      minimum === undefined ? ['"lost"', '""'] : [`${minimum - 1}`, `${(maximum ?? 0) + 1}`, '"x"', '1.5']
    for (const value of outside) expect([value, await asked(value)]).toEqual([value, 400])
  })
})

const runs = { numRuns: 200 }

/** `call` itself throws for a response that the OpenAPI document does not describe. */
const answered = async (path: string, allowed: readonly number[], init = {}) => {
  const { status } = await service.call(path, init)
  expect(allowed).toContain(status)
  return status
}

describe('generated requests never get an undocumented answer', () => {
  const anything = fc.oneof(
    fc.json(),
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc
      .record({ name: fc.anything(), categoryId: fc.anything(), status: fc.anything() }, { requiredKeys: [] })
      .map(
        value =>
          JSON.stringify(value, (_key, inner) => (typeof inner === 'bigint' ? String(inner) : inner)) ?? '',
      ),
    fc
      .tuple(fc.string(), fc.bigInt(), fc.string())
      .map(([name, id, rest]) => `{"name":${JSON.stringify(name)},"categoryId":${id}${rest}}`),
  )

  test('bodies', async () => {
    await fc.assert(
      fc.asyncProperty(anything, async body => {
        await answered('/v1/pets', [201, 400], { method: 'POST', body })
      }),
      runs,
    )
  })

  test('bodies of random bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async bytes => {
        await answered('/v1/pets', [201, 400], { method: 'POST', body: new Uint8Array(bytes) })
      }),
      runs,
    )
  })

  test('animals that are valid are added and come back as they were sent', async () => {
    const pet = fc.record(
      {
        name: fc
          .string({ unit: 'grapheme', minLength: 1, maxLength: 50 })
          .filter(name => /\S/u.test(name) && !name.includes('\0')),
        categoryId: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        status: fc.constantFrom('available', 'pending', 'sold'),
      },
      { requiredKeys: ['name', 'categoryId'] },
    )
    await fc.assert(
      fc.asyncProperty(pet, async ({ name, categoryId, status }) => {
        const fields = `"name":${JSON.stringify(name)},"categoryId":${categoryId}${status ? `,"status":"${status}"` : ''}}`
        const { text, headers } = await service.call('/v1/pets', { method: 'POST', body: `{${fields}` })
        const id = headers.get('location')?.split('/').at(-1)
        expect(text).toBe(`{"id":${id},${fields}`)
        expect((await service.call(`/v1/pets/${id}`)).text).toBe(text)
      }),
      { numRuns: 100 },
    )
  })

  test('queries', async () => {
    const name = fc.oneof(fc.constantFrom('limit', 'status', 'cursor'), fc.string())
    const value = fc.oneof(
      fc.string({ unit: 'binary' }).map(text => text.toWellFormed()),
      fc.integer().map(String),
      fc.constantFrom('sold', ''),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(name, value), { maxLength: 5 }),
        fc.boolean(),
        async (pairs, strict) => {
          const query = pairs.map(pair => pair.map(encodeURIComponent).join('=')).join('&')
          const headers: Record<string, string> = strict ? { prefer: 'handling=strict' } : {}
          await answered(`/v1/pets?${query}`, [200, 400], { headers })
        },
      ),
      runs,
    )
  })

  test('queries of any characters that a URL can hold', async () => {
    const text = fc.string({ unit: fc.constantFrom(...'limtsaucor=&%0123456789+;[]?/') })
    await fc.assert(
      fc.asyncProperty(text, async query => {
        await answered(`/v1/pets?${query}`, [200, 400])
      }),
      runs,
    )
  })

  test('paths', async () => {
    const segment = fc.oneof(
      fc.string({ unit: 'binary' }).map(text => encodeURIComponent(text.toWellFormed())),
      fc.bigInt().map(String),
      fc.constantFrom('pets', '..', '.', '', '%', '%2e'),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(segment, { maxLength: 4 }), async segments => {
        await answered(`/v1/${segments.join('/')}`, [200, 404])
      }),
      runs,
    )
  })

  test('credentials', async () => {
    const header = fc.oneof(
      fc.string().map(text => `Bearer ${text}`),
      fc.string(),
      fc.string({ minLength: 36, maxLength: 36 }).map(text => `Bearer pets_${text}`),
    )
    await fc.assert(
      fc.asyncProperty(header, async authorization => {
        await answered('/v1/pets', [401], { key: null, headers: { authorization } })
      }),
      runs,
    )
  })
})
