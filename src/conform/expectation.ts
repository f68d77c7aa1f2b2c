import { int64 } from '../field.ts'
import { InexactNumber, isJsonObject, parseJson } from '../int64.ts'
import { type Pet, petStatus } from '../pet.ts'
import { fail } from './check.ts'
import type { Answer } from './probe.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** An answer as a report shows it. */
export function shown({ asked, status, text }: Answer): string {
  return `${asked} answered ${status} ${text === '' ? 'without a body' : text}`
}

export function expectStatus(answer: Answer, ...statuses: number[]): void {
  if (!statuses.includes(answer.status)) fail(`status ${statuses.join(' or ')}`, shown(answer))
}

export function expectHeader(answer: Answer, name: string, form: RegExp, expected: string): string {
  const value = answer.headers.get(name)
  if (value === null) fail(`the header ${name}: ${expected}`, `${answer.asked} answered without it`)
  if (!form.test(value)) fail(`the header ${name}: ${expected}`, `${answer.asked} answered ${name}: ${value}`)
  return value
}

export function expectJsonType(answer: Answer): void {
  expectHeader(answer, 'Content-Type', /^application\/json\s*(;|$)/i, 'application/json')
}

export function jsonIn(answer: Answer): unknown {
  expectJsonType(answer)
  const parsed = parseJson(answer.text)
  return parsed.ok ? parsed.value : fail('a JSON body', shown(answer))
}

/** What the fields of a Pet hold, by the interface alone: it sets no limits on a name. */
export const petFields = {
  id: { expected: 'an int64', holds: (value: unknown) => int64.read(value) !== undefined },
  name: { expected: 'a string', holds: (value: unknown) => typeof value === 'string' },
  categoryId: { expected: 'an int64', holds: (value: unknown) => int64.read(value) !== undefined },
  status: {
    expected: 'available, pending or sold, or left out',
    holds: (value: unknown) => value === undefined || petStatus.read(value) !== undefined,
  },
}

export function expectPetField(pet: unknown, field: keyof typeof petFields, answer: Answer): void {
  if (!isJsonObject(pet)) fail('a Pet: a JSON object', shown(answer))
  const { expected, holds } = petFields[field]
  const value = pet[field]
  if (holds(value)) return
  const found = value === undefined ? `without ${field}` : `with the ${field} ${textOf(value)}`
  fail(`the ${field} of a Pet: ${expected}`, `${answer.asked} answered ${answer.status} ${found}`)
}

/** Whole: the report cuts it, but only after it has taken the key out. */
function textOf(value: unknown): string {
  return value instanceof InexactNumber ? value.source : JSON.stringify(value)
}

function petOf(value: unknown, answer: Answer): Pet {
  for (const field of ['id', 'name', 'categoryId', 'status'] as const) expectPetField(value, field, answer)
  const { id, name, categoryId, status } = value as JsonObject
  const known = petStatus.read(status)
  return {
    id: int64.read(id) ?? 0n,
    name: String(name),
    categoryId: int64.read(categoryId) ?? 0n,
    ...(known && { status: known }),
  }
}

export function petIn(answer: Answer, status: number): Pet {
  expectStatus(answer, status)
  return petOf(jsonIn(answer), answer)
}

/** The items of a list, not looked at yet. */
export function itemsIn(answer: Answer): readonly unknown[] {
  expectStatus(answer, 200)
  const items = jsonIn(answer)
  return Array.isArray(items) ? items : fail('a JSON array', shown(answer))
}

export function petsIn(answer: Answer): readonly Pet[] {
  return itemsIn(answer).map(item => petOf(item, answer))
}

/** What an Error body holds. */
export const errorFields = {
  code: { expected: 'a string', holds: (value: unknown) => typeof value === 'string' },
  message: { expected: 'a string', holds: (value: unknown) => typeof value === 'string' },
  status: { expected: 'the HTTP status', holds: (value: unknown, status: number) => value === status },
}

export function expectErrorField(error: unknown, field: keyof typeof errorFields, answer: Answer): void {
  const { expected, holds } = errorFields[field]
  if (!isJsonObject(error)) fail('an Error: a JSON object', shown(answer))
  if (!holds(error[field], answer.status)) fail(`the ${field} of an Error: ${expected}`, shown(answer))
}

/** The Error that an answer of one of these statuses has as its body. */
export function errorIn(
  answer: Answer,
  ...statuses: number[]
): { readonly code: string; readonly message: string } {
  expectStatus(answer, ...statuses)
  const error = jsonIn(answer)
  for (const field of ['code', 'message', 'status'] as const) expectErrorField(error, field, answer)
  const { code, message } = error as JsonObject
  return { code: String(code), message: String(message) }
}

/** An Error whose message has each of these names in it. */
export function expectNamed(answer: Answer, status: number, ...names: string[]): void {
  const { message } = errorIn(answer, status)
  const missing = names.filter(name => !message.includes(name))
  if (missing.length > 0) fail(`a message that names ${missing.join(' and ')}`, shown(answer))
}

export function expectSamePet(
  found: Pet,
  sent: Pick<Pet, 'name' | 'categoryId' | 'status'>,
  answer: Answer,
): void {
  for (const field of ['name', 'categoryId', 'status'] as const) {
    if (found[field] !== sent[field])
      fail(`the ${field} ${sent[field] ?? 'left out'}, as it was sent`, shown(answer))
  }
}
