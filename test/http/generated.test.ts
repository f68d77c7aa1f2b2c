import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
  await service.stores.pets.create({ name: 'Rex', categoryId: 1n, status: 'sold' })
})
afterAll(() => service[Symbol.asyncDispose]())

const runs = { numRuns: 300 }

/** `call` itself throws for an answer that the OpenAPI document does not describe. */
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
