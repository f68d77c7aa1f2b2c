import { type Field, int64, invalid, missing, oneOf, type Rule, unknownNames } from './field.ts'
import { isJsonObject } from './int64.ts'

export const petStatuses = ['available', 'pending', 'sold'] as const
export const petStatus = oneOf(petStatuses)
export type PetStatus = NonNullable<ReturnType<typeof petStatus.read>>

export interface NewPet {
  readonly name: string
  readonly categoryId: bigint
  /** Absent if the client sent none. No status filter finds such an animal. */
  readonly status?: PetStatus
}

export interface Pet extends NewPet {
  readonly id: bigint
}

/** What to change: absent means unchanged. `status: null` removes the status. */
export interface PetChanges {
  readonly name?: string | undefined
  readonly categoryId?: bigint | undefined
  readonly status?: PetStatus | null | undefined
}

const nameCharsMax = 1_000
// With the flag u it counts Unicode code points, as JSON Schema does; `length` counts some of them twice.
const nameLengthRegExp = new RegExp(`^.{1,${nameCharsMax}}$`, 'su')
const nameLengthText = '1 to 1,000 characters'

/** In the syntax that JavaScript, Go, Rust, Java and Python share, for generated clients. Takes linear time. */
const namePattern = '^\\s*[^\\s\\x00][^\\x00]*$'
const nameRegExp = new RegExp(namePattern)

export const petName: Field<string> = {
  schema: { type: 'string', minLength: 1, maxLength: nameCharsMax, pattern: namePattern },
  expected: nameLengthText,
  read(value) {
    if (typeof value !== 'string' || !nameLengthRegExp.test(value)) return undefined
    return nameRegExp.test(value) && value.isWellFormed() ? value : undefined
  },
  problem(value) {
    if (typeof value !== 'string') return `is not a string: expected ${nameLengthText}`
    if (value === '') return `is empty: expected ${nameLengthText}`
    if (value.includes('\0') || !value.isWellFormed()) return 'contains U+0000 or an unpaired surrogate: remove it'
    if (value.trim() === '') return 'is blank: expected at least one visible character'
    return `is too long: expected ${nameLengthText}`
  },
}

export const newPetNames: readonly (keyof NewPet)[] = ['name', 'categoryId', 'status']
export const newPetRequired: readonly (keyof NewPet)[] = ['name', 'categoryId']

type Problems = { readonly ok: false; readonly problems: readonly string[] }

/** Reads an animal as a client sent it, and collects every problem. `strict` refuses unknown properties. */
export function readNewPet(sent: unknown, strict = false): { readonly ok: true; readonly pet: NewPet } | Problems {
  const { name, categoryId, status, problems } = readProperties(sent, petStatus, newPetRequired, strict)
  if (problems.length > 0 || name === undefined || categoryId === undefined) return { ok: false, problems }
  return { ok: true, pet: status === undefined ? { name, categoryId } : { name, categoryId, status } }
}

const petStatusOrNull: Rule<PetStatus | null> = {
  expected: `${petStatus.expected}, or null for none`,
  read: value => (value === null ? null : petStatus.read(value)),
}

type ReadPetChanges = { readonly ok: true; readonly changes: PetChanges } | Problems

/** Like `readNewPet`, for an animal that exists. */
export function readPetChanges(sent: unknown, strict = false): ReadPetChanges {
  const { problems, ...changes } = readProperties(sent, petStatusOrNull, [], strict)
  return problems.length > 0 ? { ok: false, problems } : { ok: true, changes }
}

/** A property that is absent or invalid is undefined. */
function readProperties<Status>(
  sent: unknown,
  statusRule: Rule<Status>,
  required: readonly (keyof NewPet)[],
  strict: boolean,
) {
  if (!isJsonObject(sent)) {
    const problem = invalid('the body', sent, { expected: 'a JSON object' })
    return { name: undefined, categoryId: undefined, status: undefined, problems: [problem] }
  }
  const problems: string[] = []
  const read = <T>(name: keyof NewPet, rule: Rule<T>): T | undefined => {
    if (!Object.hasOwn(sent, name)) {
      if (required.includes(name)) problems.push(missing(name, rule))
      return undefined
    }
    const value = rule.read(sent[name])
    if (value === undefined) problems.push(invalid(name, sent[name], rule))
    return value
  }
  const values = {
    name: read('name', petName),
    categoryId: read('categoryId', int64),
    status: read('status', statusRule),
  }
  if (strict) problems.push(...unknownNames('property', Object.keys(sent), newPetNames))
  return { ...values, problems }
}
