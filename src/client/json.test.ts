import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type * as Domain from '../pet.ts'
import { petStatus, readNewPet } from '../pet.ts'
import type { NewPet, Pet, PetStatus } from './json.ts'
import { fieldsToJson, parseJson, readError, readInteger, readPet, readPets, stringify, toInt64 } from './json.ts'

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
/** Looks like the text around an integer. */
const baitText = fc
  .array(fc.constantFrom('id', '"', ':', ' ', '\\', ',', '}', ']', '[', '{', '-', '9007199254740993', '\n'))
  .map(parts => parts.join(''))

test('an integer is read exactly, next to any text and property names', () => {
  const anyText = fc.oneof(fc.string({ unit: 'binary' }), baitText)
  const named = fc.dictionary(baitText, fc.oneof(baitText, fc.array(baitText, { maxLength: 3 })), { maxKeys: 3 })
  fc.assert(
    fc.property(int64, int64, anyText, named, fc.constantFrom('', '\n  '), (id, other, text, named, gap) => {
      const [name, names] = [JSON.stringify(text), JSON.stringify(named)]
      const json = `[{${gap}"name":${gap}${name},${gap}"id":${gap}${id}${gap},"otherId":${other},"names":${names}}]`
      const [parsed] = parseJson(json) as [Record<string, unknown>]
      expect(readInteger(parsed['id'])).toBe(id)
      expect(readInteger(parsed['otherId'])).toBe(other)
      expect([parsed['name'], parsed['names']]).toEqual([text, named])
    }),
    { numRuns: 1_000 },
  )
})

const notIntegers = '"9007199254740993" ["9007199254740993"] 1.5 9007199254740993.5 9.007199254740993e15 1e400 null'
test.each<[string, bigint | undefined]>([
  ['{"id":7.0}', 7n],
  ['{"id":7e2}', 700n],
  ['{"x\\"id":1,"id":9007199254740993}', 9007199254740993n],
  ...notIntegers.split(' ').map((text): [string, undefined] => [`{"id":${text}}`, undefined]),
])('an integer in %s is %p', (text, id) => {
  expect(readInteger((parseJson(text) as { id: unknown }).id)).toBe(id)
})

test('an integer does not make invalid JSON valid', () => {
  for (const text of ['{"id":00000000000000001}', '{"id":-}', '{id":9007199254740993}', '{"id":9007199254740993']) {
    expect(() => parseJson(text)).toThrow(SyntaxError)
  }
})

test('stringify writes what JSON.stringify writes, and every bigint exactly', () => {
  const keys = fc.oneof(fc.constantFrom('id', 'categoryId', '__proto__', 'toString'), baitText)
  const { value } = fc.letrec<{ value: unknown }>(tie => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.bigInt(),
      fc.constantFrom(undefined, null, true, new Date(0)),
      fc.oneof(fc.double(), fc.string({ unit: 'binary' }), baitText),
      fc.array(tie('value')),
      fc.dictionary(keys, tie('value')),
    ),
  }))
  // The oracle: Node 20 and older browsers do not have it.
  const { rawJSON } = JSON as never as { rawJSON: (text: string) => unknown }
  const raw = (_key: string, value: unknown) => (typeof value === 'bigint' ? rawJSON(`${value}`) : value)
  fc.assert(
    fc.property(value, fc.constantFrom(undefined, 2, '\t'), (value, space) => {
      expect(stringify(value, space)).toBe(JSON.stringify(value, raw, space))
    }),
    { numRuns: 1_000 },
  )
})

test('stringify is not changed by a program that defines BigInt.prototype.toJSON', () => {
  Object.assign(BigInt.prototype, { toJSON: () => 'changed' })
  try {
    expect(stringify([{ id: 2n ** 63n }, -1n])).toBe('[{"id":9223372036854775808},-1]')
  } finally {
    Reflect.deleteProperty(BigInt.prototype, 'toJSON')
  }
})

test('an animal to send may have integers as numbers if they are exact', () => {
  expect(fieldsToJson({ name: 'Rex', categoryId: -7 })).toBe('{"name":"Rex","categoryId":-7}')
  expect([toInt64('id', 2 ** 53 - 1), toInt64('id', -0)]).toEqual([9007199254740991n, 0n])
  for (const value of [1.5, 2 ** 53, 2n ** 63n, -(2n ** 63n) - 1n, '7', null]) {
    const shown = typeof value === 'string' ? '"7"' : String(value)
    expect(() => toInt64('id', value as bigint)).toThrow(`id is ${shown}: expected`)
  }
})

test('an animal to send is valid for the service, which has the same types', () => {
  type Same<A, B> = [A, B] extends [B, A] ? true : never
  const same: [Same<Pet, Domain.Pet>, Same<PetStatus, Domain.PetStatus>] = [true, true]
  const pet: NewPet & Domain.NewPet = { name: 'Rex "the dog"\n', categoryId: 7n, status: 'sold' }
  expect(readNewPet(JSON.parse(fieldsToJson(pet)))).toEqual({ ok: true, pet })
  expect(petStatus.schema['enum']).toEqual(['available', 'pending', 'sold'] satisfies PetStatus[])
  expect(same).toEqual([true, true])
})

const rex = '"name":"Rex","categoryId":7'

test('a response loses properties that its type does not have', () => {
  const pet = { id: 1n, name: 'Rex', categoryId: 7n, status: 'pending' } as const
  expect(readPet(parseJson(`{"id":1,${rex},"status":"pending","age":3}`))).toStrictEqual(pet)
  expect(readError(parseJson('{"code":"a","message":"b","status":400}'))).toStrictEqual({ code: 'a', message: 'b' })
})

test.each([
  ...['null', '[]', `{${rex}}`, `{"id":"1",${rex}}`, `{"id":9223372036854775808,${rex}}`, '{"id":1,"categoryId":7}'],
  ...['{"id":1,"name":9007199254740993,"categoryId":7}', '{"id":1,"name":"","categoryId":-9223372036854775809}'],
  ...[`{"id":1,${rex},"status":"lost"}`, `{"id":1,${rex},"status":null}`],
])('a response is not a Pet: %s', text => {
  expect(readPet(parseJson(text))).toBeUndefined()
  expect(readPets(parseJson(`[{"id":1,${rex}},${text}]`))).toBeUndefined()
})

test('a response is not an Error without a code and a message', () => {
  for (const text of ['{"code":9007199254740993,"message":"b"}', '{"code":"a"}', 'null', '[]']) {
    expect(readError(parseJson(text))).toBeUndefined()
  }
})
