import { integerOf } from './json.ts'
import type { NewPet, Pet, PetStatus } from './pet.ts'

/** The Error body of the service. */
export interface ErrorBody {
  readonly code: string
  readonly message: string
}

/** What is wrong with an answer's shape, as the end of a sentence that begins with the answer. */
export class WrongShape extends Error {
  override readonly name = 'WrongShape'
}

const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n
const statuses: readonly unknown[] = ['available', 'pending', 'sold'] satisfies PetStatus[]

export function readPets(value: unknown): Pet[] {
  if (!Array.isArray(value)) throw new WrongShape('is not an array')
  return value.map((item, index) => readPetAt(index, item))
}

export function readPet(value: unknown): Pet {
  return readPetAt(undefined, value)
}

/** Properties that an animal does not have are left out. */
function readPetAt(index: number | undefined, value: unknown): Pet {
  if (!isObject(value)) throw wrong(index, 'an animal', 'an object')
  const { name, status } = value
  const id = integerOf(value['id'])
  const categoryId = integerOf(value['categoryId'])
  if (id === undefined || !isInt64(id)) throw wrong(index, 'id', 'a 64-bit integer')
  if (typeof name !== 'string') throw wrong(index, 'name', 'a string')
  if (categoryId === undefined || !isInt64(categoryId)) throw wrong(index, 'categoryId', 'a 64-bit integer')
  if (status === undefined) return { id, name, categoryId }
  if (!isStatus(status)) throw wrong(index, 'status', `one of ${statuses.join(', ')}`)
  return { id, name, categoryId, status }
}

function wrong(index: number | undefined, what: string, expected: string): WrongShape {
  return new WrongShape(
    `has ${what}${index === undefined ? '' : ` at index ${index}`} that is not ${expected}`,
  )
}

/** The Error that a body is; undefined where it is something else. */
export function readError(value: unknown): ErrorBody | undefined {
  if (!isObject(value)) return undefined
  const { code, message } = value
  return typeof code === 'string' && typeof message === 'string' ? { code, message } : undefined
}

/** The body of a creation. Throws a TypeError for what no service could take. */
export function newPetToJson({ name, categoryId, status }: NewPet): string {
  if (typeof name !== 'string') throw new TypeError(`Cannot send name ${show(name)}: expected a string`)
  const known = `{"name":${JSON.stringify(name)},"categoryId":${int64ToText('categoryId', categoryId)}`
  if (status === undefined) return `${known}}`
  if (!isStatus(status)) {
    throw new TypeError(`Cannot send status ${show(status)}: expected one of ${statuses.join(', ')}`)
  }
  return `${known},"status":"${status}"}`
}

/** An integer's digits. Throws a TypeError for one that is not exact, or wider than 64 bits. */
export function int64ToText(field: string, value: bigint | number): string {
  const exact = typeof value === 'bigint' ? isInt64(value) : Number.isSafeInteger(value)
  if (exact) return BigInt(value).toString()
  throw new TypeError(
    `Cannot send ${field} ${show(value)}: expected a bigint from ${int64Min} to ${int64Max}, or a number that is a safe integer`,
  )
}

function isInt64(value: bigint): boolean {
  return value >= int64Min && value <= int64Max
}

function isStatus(value: unknown): value is PetStatus {
  return statuses.includes(value)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40))
  return typeof value === 'object' ? (value === null ? 'null' : 'of type object') : String(value)
}
