import { describe, expect, mock, test } from 'bun:test'
import fc from 'fast-check'
import type * as Domain from '../pet.ts'
import { petStatus, readNewPet } from '../pet.ts'
import type { NewPet, Pet, PetStatus } from './json.ts'
import * as json from './json.ts'

const { readInteger, newPetToJson, parseJson, readError, readPet, readPets } = json
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
/** Looks like the text around an integer. */
const baitText = fc
  .array(fc.constantFrom('id', '"', ':', ' ', '\\', ',', '}', ']', '[', '{', '-', '9007199254740993', '\n'))
  .map(parts => parts.join(''))

describe('an integer', () => {
  test('is read exactly, next to any text and property names', () => {
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
      { numRuns: 2_000 },
    )
  })

  const notIntegers = [
    ...['"7"', '"9007199254740993"', '["9007199254740993"]', '1.5', '9007199254740993.5', '9.007199254740993e15'],
    ...['1e400', 'null', 'true', '{}', '[]'],
  ]
  test.each<[string, bigint | undefined]>([
    ['{"id":7.0}', 7n],
    ['{"id":7e2}', 700n],
    ['{"x\\"id":1,"id":9007199254740993}', 9007199254740993n],
    ...notIntegers.map((text): [string, undefined] => [`{"id":${text}}`, undefined]),
  ])('in %s is %p', (text, id) => {
    expect(readInteger((parseJson(text) as { id: unknown }).id)).toBe(id)
  })

  test('does not make invalid JSON valid', () => {
    for (const text of ['{"id":00000000000000001}', '{"id":-}', '{id":9007199254740993}', '{"id":9007199254740993']) {
      expect(() => parseJson(text)).toThrow(SyntaxError)
    }
  })
})

describe('stringify', () => {
  const { stringify } = json

  test('writes what JSON.stringify writes, and every bigint exactly', () => {
    const keys = fc.oneof(fc.constantFrom('id', 'categoryId', '__proto__', 'toString'), baitText)
    const { value } = fc.letrec<{ value: unknown }>(tie => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.bigInt(),
        fc.constantFrom(undefined, null, true, new Date(0), { toJSON: () => 2n ** 64n }),
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

  test('is not changed by a program that defines BigInt.prototype.toJSON', () => {
    Object.assign(BigInt.prototype, { toJSON: () => 'changed' })
    try {
      const value = [{ id: 2n ** 63n }, -1n, Object(5n), { toJSON: () => 6n }]
      expect(stringify(value)).toBe('[{"id":9223372036854775808},-1,5,6]')
    } finally {
      Reflect.deleteProperty(BigInt.prototype, 'toJSON')
    }
  })

  test('writes a bigint object as its integer, and calls a getter once', () => {
    const get = mock(() => 1n)
    expect(stringify([Object(5n), Object.defineProperty({}, 'id', { get, enumerable: true })])).toBe('[5,{"id":1}]')
    expect(get).toHaveBeenCalledTimes(1)
  })
})

describe('an animal to send', () => {
  test('comes back as the same animal', () => {
    const status = fc.option(fc.constantFrom('available', 'pending', 'sold'), { nil: undefined })
    fc.assert(
      fc.property(int64, fc.string({ unit: 'binary' }), int64, status, (id, name, categoryId, given) => {
        const returned = newPetToJson({ name, categoryId, status: given }).replace('{', `{"id":${id},`)
        const pet = given === undefined ? { id, name, categoryId } : { id, name, categoryId, status: given }
        expect(readPet(parseJson(returned))).toStrictEqual(pet)
      }),
    )
  })

  test('may have integers as numbers', () => {
    expect(newPetToJson({ name: 'Rex', categoryId: -7 })).toBe('{"name":"Rex","categoryId":-7}')
    expect(json.toInt64('id', 2 ** 53 - 1)).toBe(9007199254740991n)
    expect(json.toInt64('id', -0)).toBe(0n)
  })

  test('is valid for the service, which has the same types', () => {
    type Same<A, B> = [A, B] extends [B, A] ? true : never
    const same: [Same<Pet, Domain.Pet>, Same<PetStatus, Domain.PetStatus>] = [true, true]
    const pet: NewPet & Domain.NewPet = { name: 'Rex "the dog"\n', categoryId: 7n, status: 'sold' }
    expect(readNewPet(JSON.parse(newPetToJson(pet)))).toEqual({ ok: true, pet })
    expect(petStatus.schema['enum']).toEqual(['available', 'pending', 'sold'] satisfies PetStatus[])
    expect(same).toEqual([true, true])
  })

  test.each<[field: string, expected: string, invalid: Record<string, unknown>]>([
    ['categoryId', 'a 64-bit bigint or a number that is a safe integer', { 1.5: 1.5, 9007199254740992: 2 ** 53 }],
    ['categoryId', 'a 64-bit bigint', { [`${2n ** 63n}`]: 2n ** 63n, '-9223372036854775809': -(2n ** 63n) - 1n }],
    ['categoryId', 'a 64-bit bigint', { NaN: Number.NaN, '"7"': '7', null: null, 'an object': {} }],
    ['name', 'a string', { 7: 7, undefined: undefined }],
    ['status', 'available, pending or sold', { '"lost"': 'lost', [`"${'x'.repeat(40)}"`]: 'x'.repeat(50), null: null }],
  ])('with an invalid %s is a TypeError: expected %s', (field, expected, invalid) => {
    for (const [shown, value] of Object.entries(invalid)) {
      const write = () => newPetToJson({ name: 'Rex', categoryId: 7n, [field]: value } as NewPet)
      expect(write).toThrow(TypeError)
      expect(write).toThrow(`${field} is ${shown}: expected ${expected}`)
    }
  })

  test.each<[shown: string, value: unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['"Rex"', 'Rex'],
    ['an array', [{ name: 'Rex', categoryId: 7n }]],
  ])('that is %s is a TypeError that says so', (shown, value) => {
    const error = new TypeError(`The animal is ${shown}: expected an object with name and categoryId`)
    expect(() => newPetToJson(value as NewPet)).toThrow(error)
  })
})

describe('a response', () => {
  const rex = '"name":"Rex","categoryId":7'

  test('loses properties that a Pet does not have', () => {
    const pet = { id: 1n, name: 'Rex', categoryId: 7n }
    expect(readPet(parseJson(`{"id":1,${rex},"age":3}`))).toStrictEqual(pet)
  })

  test.each<[string, ...string[]]>([
    ['the animal is not an object', 'null', '[]', '"Rex"'],
    ['id is not a 64-bit integer', `{${rex}}`, `{"id":"1",${rex}}`, `{"id":9223372036854775808,${rex}}`],
    ['name is not a string', '{"id":1,"categoryId":7}', '{"id":1,"name":9007199254740993,"categoryId":7}'],
    ['categoryId is not a 64-bit integer', '{"id":1,"name":"","categoryId":-9223372036854775809}'],
    ['status is not available, pending or sold', `{"id":1,${rex},"status":"lost"}`, `{"id":1,${rex},"status":null}`],
  ])('is not a Pet: %s', (problem, ...texts) => {
    for (const text of texts) {
      expect(() => readPet(parseJson(text))).toThrow(new json.InvalidResponse(problem))
      const second = `[{"id":1,${rex}},${text}]`
      expect(() => readPets(parseJson(second))).toThrow(problem.replace(' is not', ' at index 1 is not'))
    }
  })

  test('with a code and a message is an Error', () => {
    const error = { code: 'a', message: 'b' }
    expect(readError(parseJson('{"code":"a","message":"b","status":400}'))).toEqual(error)
    for (const text of ['{"code":9007199254740993,"message":"b"}', '{"code":"a"}', 'null', '[]']) {
      expect(readError(parseJson(text))).toBeUndefined()
    }
  })
})
