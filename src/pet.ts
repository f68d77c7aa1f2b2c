import type { Awaitable } from './awaitable.ts'
import { cannotRead, type Field, oneOf, unknownNames } from './field.ts'
import { int64 } from './int64.ts'
import { isJsonObject } from './json.ts'

export const petStatus = oneOf(['available', 'pending', 'sold'])
export type PetStatus = NonNullable<ReturnType<typeof petStatus.read>>

export interface NewPet {
  readonly name: string
  readonly categoryId: bigint
  /** Absent where the client gave none; no status filter finds such an animal. */
  readonly status?: PetStatus
}

export interface Pet extends NewPet {
  readonly id: bigint
}

const nameCharsMax = 1_000

// Patterns as JSON Schema means them, with the u flag: a surrogate matches only where it has no partner.
const notBlank = '\\S'
const unstorable = '[\\u0000\\uD800-\\uDFFF]'
const notBlankPattern = new RegExp(notBlank, 'u')
const unstorablePattern = new RegExp(unstorable, 'u')

export const petName: Field<string> = {
  schema: {
    type: 'string',
    minLength: 1,
    maxLength: nameCharsMax,
    pattern: notBlank,
    not: { pattern: unstorable },
  },
  expected: 'text of 1 to 1,000 characters, not all white space, without U+0000 or an unpaired surrogate',
  read(value) {
    if (typeof value !== 'string' || hasMoreCharsThan(value, nameCharsMax)) return undefined
    return notBlankPattern.test(value) && !unstorablePattern.test(value) ? value : undefined
  },
}

/** Characters are Unicode code points, as in JSON Schema; a string's length counts some of them twice. */
function hasMoreCharsThan(text: string, max: number): boolean {
  return text.length > max && (text.length > 2 * max || [...text].length > max)
}

export const newPetFields = { name: petName, categoryId: int64, status: petStatus } as const
export const newPetRequired: readonly (keyof typeof newPetFields)[] = ['name', 'categoryId']

export type ReadNewPet =
  | { readonly ok: true; readonly pet: NewPet }
  | { readonly ok: false; readonly problems: readonly string[] }

/**
 * Reads what a client sent as an animal, and says everything that is wrong with it, not just the first thing.
 * Properties that an animal does not have are left out; with `strict` they are problems.
 */
export function readNewPet(sent: unknown, strict = false): ReadNewPet {
  if (!isJsonObject(sent)) {
    return { ok: false, problems: [cannotRead('the body', sent, 'an object with name and categoryId')] }
  }
  const problems: string[] = []
  const read = <T>(name: keyof typeof newPetFields, field: Field<T>): T | undefined => {
    if (!Object.hasOwn(sent, name)) {
      if (newPetRequired.includes(name)) problems.push(`${name} is missing: expected ${field.expected}`)
      return undefined
    }
    const found = field.read(sent[name])
    if (found === undefined) problems.push(cannotRead(name, sent[name], field.expected))
    return found
  }
  const name = read('name', petName)
  const categoryId = read('categoryId', int64)
  const status = read('status', petStatus)
  if (strict) problems.push(...unknownNames('property', Object.keys(sent), Object.keys(newPetFields)))
  if (problems.length > 0 || name === undefined || categoryId === undefined) return { ok: false, problems }
  return { ok: true, pet: status === undefined ? { name, categoryId } : { name, categoryId, status } }
}

/** Built by hand because `JSON.stringify` knows no bigint; the integers come out digit for digit. */
export function petToJson({ id, name, categoryId, status }: Pet): string {
  const known = `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId}`
  return status === undefined ? `${known}}` : `${known},"status":"${status}"}`
}

export interface PageRequest {
  readonly limit: number
  /** Only animals with this status. */
  readonly status?: PetStatus
  /** Only animals with a higher id: where the page before ended. */
  readonly after?: bigint
}

export interface PetPage {
  readonly pets: readonly Pet[]
  /** Whether animals follow this page. */
  readonly more: boolean
}

/**
 * Keeps the animals. A database that answers at once can implement it, and one that answers later; the contract suite
 * takes either.
 * A store that cannot answer now throws (or rejects with) StoreUnavailable. It has then changed nothing, unless it was lost
 * in the moment between the change and its answer: that is what `createOnce` is for.
 */
export interface PetStore {
  /** Ascending by id; every page costs the same at any depth. */
  list(page: PageRequest): Awaitable<PetPage>
  /**
   * Another one after every change, by whomever: at the same version every answer is the same. A change by another process may
   * show a turn of the event loop late. Absent where that is dear to tell.
   */
  version?(): unknown
  /** The animal with its new id, higher than all before. It then survives a crash. IdsExhausted if no id is left. */
  create(pet: NewPet): Awaitable<Pet>
  /** The same, but at most once under one key; key and animal are kept in one transaction. */
  createOnce(pet: NewPet, once: Once): Awaitable<Creation>
  get(id: bigint): Awaitable<Pet | undefined>
  /** Forgets keys of creations that are older than they are kept, at most so many, and says how many it forgot. */
  forgetExpired(now: Date, atMost: number): Awaitable<number>
}

/** A client's own name for one creation, so that asking for it again adds nothing. */
export interface Once {
  /** Whose name it is: two API keys may use the same one. */
  readonly scope: string
  readonly key: string
  readonly at: Date
}

/** For how long a creation is remembered by its key. */
export const onceKeptMs = 24 * 60 * 60 * 1_000

export type Creation =
  /** `replayed`: it had been added before under this key; this is that animal. */
  | { readonly outcome: 'created' | 'replayed'; readonly pet: Pet }
  /** The key was used for another animal. */
  | { readonly outcome: 'different' }

/** Equal for equal animals, however they were written. */
export function fingerprintOf(pet: NewPet): string {
  return new Bun.CryptoHasher('sha256').update(petToJson({ ...pet, id: 0n })).digest('hex')
}
