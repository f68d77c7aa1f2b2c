import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readNewPet } from '../pet.ts'
import { parseJson } from './json.ts'
import type { NewPet } from './pet.ts'
import { int64ToText, newPetToJson, readError, readPet, readPets, WrongShape } from './wire.ts'

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })

test('what is sent of an animal comes back as the same animal', () => {
  const status = fc.option(fc.constantFrom('available', 'pending', 'sold'), { nil: undefined })
  fc.assert(
    fc.property(int64, fc.string({ unit: 'binary' }), int64, status, (id, name, categoryId, given) => {
      const sent = newPetToJson({ name, categoryId, status: given })
      const answered = sent.replace('{', `{"id":${id},`)
      const pet = given === undefined ? { id, name, categoryId } : { id, name, categoryId, status: given }
      expect(readPet(parseJson(answered))).toEqual(pet)
    }),
  )
})

test('a number that is a safe integer is sent as its digits', () => {
  expect(newPetToJson({ name: 'Rex', categoryId: -7 })).toBe('{"name":"Rex","categoryId":-7}')
  expect(int64ToText('id', 2 ** 53 - 1)).toBe('9007199254740991')
  expect(int64ToText('id', -0)).toBe('0')
})

test('the service reads what is sent', () => {
  const pet = { name: 'Rex "the dog"\n', categoryId: 7n, status: 'sold' } as const
  expect(readNewPet(JSON.parse(newPetToJson(pet)))).toEqual({ ok: true, pet })
})

test.each<[string, unknown]>([
  ['categoryId', { name: 'Rex', categoryId: 1.5 }],
  ['categoryId', { name: 'Rex', categoryId: 2 ** 53 }],
  ['categoryId', { name: 'Rex', categoryId: Number.NaN }],
  ['categoryId', { name: 'Rex', categoryId: Number.POSITIVE_INFINITY }],
  ['categoryId', { name: 'Rex', categoryId: 2n ** 63n }],
  ['categoryId', { name: 'Rex', categoryId: -(2n ** 63n) - 1n }],
  ['categoryId', { name: 'Rex', categoryId: '7' }],
  ['categoryId', { name: 'Rex', categoryId: null }],
  ['categoryId', { name: 'Rex', categoryId: {} }],
  ['categoryId', { name: 'Rex' }],
  ['name', { name: 7, categoryId: 7n }],
  ['name', { categoryId: 7n }],
  ['status', { name: 'Rex', categoryId: 7n, status: 'lost' }],
  ['status', { name: 'Rex', categoryId: 7n, status: null }],
])('an animal whose %s cannot be sent is a TypeError that names it: %p', (field, pet) => {
  const send = () => newPetToJson(pet as NewPet)
  expect(send).toThrow(TypeError)
  expect(send).toThrow(new RegExp(`^Cannot send ${field} .*: expected `))
})

describe('an answer', () => {
  const rex = '"name":"Rex","categoryId":7'

  test('keeps only what an animal has', () => {
    expect(readPet(parseJson(`{"id":1,${rex},"age":3}`))).toEqual({ id: 1n, name: 'Rex', categoryId: 7n })
  })

  test.each([
    ['null', 'an animal that is not an object'],
    ['[]', 'an animal that is not an object'],
    [`{${rex}}`, 'id that is not a 64-bit integer'],
    [`{"id":"1",${rex}}`, 'id that is not a 64-bit integer'],
    [`{"id":9223372036854775808,${rex}}`, 'id that is not a 64-bit integer'],
    ['{"id":1,"categoryId":7}', 'name that is not a string'],
    ['{"id":1,"name":9007199254740993,"categoryId":7}', 'name that is not a string'],
    ['{"id":1,"name":"Rex","categoryId":1.5}', 'categoryId that is not a 64-bit integer'],
    [`{"id":1,${rex},"status":"lost"}`, 'status that is not one of available, pending, sold'],
    [`{"id":1,${rex},"status":null}`, 'status that is not one of available, pending, sold'],
  ])('%s is no animal', (text, problem) => {
    const read = () => readPet(parseJson(text))
    expect(read).toThrow(WrongShape)
    expect(read).toThrow(problem)
  })

  test('names the place in a list', () => {
    expect(() => readPets(parseJson(`[{"id":1,${rex}},{"id":2}]`))).toThrow('has name at index 1 that is not')
    expect(() => readPets(parseJson(`{"id":1,${rex}}`))).toThrow('is not an array')
  })

  test.each<[string, unknown]>([
    ['{"code":"a","message":"b","status":400}', { code: 'a', message: 'b' }],
    ['{"code":9007199254740993,"message":"b"}', undefined],
    ['{"code":"a"}', undefined],
    ['null', undefined],
    ['[]', undefined],
    ['"error"', undefined],
  ])('%s as an Error is %p', (text, error) => {
    expect(readError(parseJson(text))).toEqual(error as undefined)
  })
})
