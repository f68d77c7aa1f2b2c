export type PetStatus = 'available' | 'pending' | 'sold'

/** An animal of the catalogue. Its integers are exact over the whole 64-bit range. */
export interface Pet {
  readonly id: bigint
  readonly name: string
  readonly categoryId: bigint
  /** Absent if the animal was added without one. */
  readonly status?: PetStatus
}

/** An animal to add; the service assigns its id. */
export interface NewPet {
  readonly name: string
  /** A number must be a safe integer. */
  readonly categoryId: bigint | number
  readonly status?: PetStatus | undefined
}

/** What to change: absent means unchanged. */
export interface PetChanges {
  readonly name?: string | undefined
  /** A number must be a safe integer. */
  readonly categoryId?: bigint | number | undefined
  /** `null` removes the status. */
  readonly status?: PetStatus | null | undefined
}

// In JSON, a quote after a letter always ends a string, so these digits are outside of strings.
const longInteger = /([A-Za-z]"\s*:\s*)(-?[1-9]\d{15,})(?=[\s,\]}])/g

// A server cannot guess the mark, so it cannot forge a marked integer.
const mark = `int:${String(Math.random()).slice(2)}:`
const markedInteger = new RegExp(`"${mark}(-?\\d+)"`, 'g')

/**
 * Parses JSON, with long integers wrapped for {@link readInteger}. They are wrapped before parsing, because Node 20 does
 * not pass the source text to a reviver. Throws a SyntaxError like JSON.parse.
 */
export function parseJson(text: string): unknown {
  return JSON.parse(/\d{16}/.test(text) ? text.replace(longInteger, `$1["${mark}$2"]`) : text)
}

/** The exact 64-bit integer in a parsed value; undefined if it is none or may have been rounded. */
export function readInteger(value: unknown): bigint | undefined {
  if (Number.isSafeInteger(value)) return BigInt(value as number)
  const wrapped: unknown = Array.isArray(value) ? value[0] : undefined
  if (typeof wrapped !== 'string' || !wrapped.startsWith(mark)) return undefined
  const integer = BigInt(wrapped.slice(mark.length))
  return isInt64(integer) ? integer : undefined
}

/**
 * JSON with every `bigint` as an exact integer; otherwise the same as JSON.stringify, which throws on a `bigint`.
 * Works without JSON.rawJSON, which Node 20 does not have.
 */
export function stringify(value: unknown, space?: string | number): string {
  const replacer = function (this: Readonly<Record<string, unknown>>, key: string, converted: unknown) {
    // Programs often define BigInt.prototype.toJSON, which has already converted the integer to a string.
    const given = this[key]
    return typeof given === 'bigint' ? `${mark}${given}` : converted
  }
  return JSON.stringify(value, replacer, space)?.replace(markedInteger, '$1')
}

export function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** The same fields, without those that are undefined. */
export function omitUndefined(fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** Undefined if the value is not a list of animals. */
export function readPets(value: unknown): Pet[] | undefined {
  if (!Array.isArray(value)) return undefined
  const pets = value.map(readPet).filter(pet => pet !== undefined)
  return pets.length === value.length ? pets : undefined
}

/** Undefined if the value is not an animal. Drops unknown properties. */
export function readPet(value: unknown): Pet | undefined {
  if (!isObject(value)) return undefined
  const { name, status } = value
  const id = readInteger(value['id'])
  const categoryId = readInteger(value['categoryId'])
  if (id === undefined || categoryId === undefined || typeof name !== 'string') return undefined
  if (status === undefined) return { id, name, categoryId }
  if (status !== 'available' && status !== 'pending' && status !== 'sold') return undefined
  return { id, name, categoryId, status }
}

/** Undefined if the value is not an Error body. */
export function readError(value: unknown) {
  if (!isObject(value)) return undefined
  const { code, message } = value
  return typeof code === 'string' && typeof message === 'string' ? { code, message } : undefined
}

/** Throws a TypeError for an integer that is not exact; the service checks the rest. */
export function fieldsToJson({ name, categoryId, status }: NewPet | PetChanges): string {
  return stringify({
    name,
    categoryId: categoryId === undefined ? undefined : toInt64('categoryId', categoryId),
    status,
  })
}

/** Throws a TypeError for an integer that is not exact or does not fit into 64 bits. */
export function toInt64(name: string, value: bigint | number): bigint {
  const exact = typeof value === 'bigint' ? isInt64(value) : Number.isSafeInteger(value)
  if (exact) return BigInt(value)
  const shown = typeof value === 'string' ? JSON.stringify(value) : value
  throw new TypeError(`${name} is ${shown}: expected a 64-bit bigint or a number that is a safe integer`)
}

function isInt64(value: bigint): boolean {
  return value === BigInt.asIntN(64, value)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
