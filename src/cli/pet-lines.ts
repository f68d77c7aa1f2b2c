import { int64, invalid, unknownNames } from '../field.ts'
import { int64Max, isJsonObject, parseJson } from '../int64.ts'
import { newPetFields, type Pet, petToJson, readNewPet } from '../pet.ts'
import { batchPetsMax, type ImportedPet, type ImportIds, keptIdProblem } from '../store.ts'
import { BadLine, readLines } from './lines.ts'

/** Animals as lines of JSON (NDJSON), each as the interface writes it. */
export function petLines(pets: readonly Pet[]): string {
  return pets.map(pet => `${petToJson(pet)}\n`).join('')
}

/** Reads such lines, and throws a {@link BadLine} at the first that is none. Blank ones are fine at the end only. */
export async function* readPetLines(
  chunks: AsyncIterable<Uint8Array>,
  ids: ImportIds,
): AsyncGenerator<readonly ImportedPet[]> {
  let batch: ImportedPet[] = []
  let number = 0
  let blank: number | undefined
  let before = 0n
  for await (const lines of readLines(chunks)) {
    for (const line of lines) {
      number++
      if (isBlank(line)) {
        blank ??= number
        continue
      }
      if (blank !== undefined)
        throw new BadLine(blank, 'it is blank: expected an animal, since more lines follow')
      const read = readPetLine(line, ids, before)
      if (!read.ok) throw new BadLine(number, read.problems.join('; '))
      before = read.pet.id ?? before
      batch.push(read.pet)
      if (batch.length < batchPetsMax) continue
      yield batch
      batch = []
    }
  }
  if (batch.length > 0) yield batch
}

function isBlank(line: string): boolean {
  return /^[ \t\r]*$/.test(line)
}

export type ReadPetLine =
  | { readonly ok: true; readonly pet: ImportedPet }
  | { readonly ok: false; readonly problems: readonly string[] }

const petProperties = ['id', ...Object.keys(newPetFields)]

/** Says everything that is wrong with a line. What an animal does not have is refused: it would be lost silently. */
export function readPetLine(line: string, ids: ImportIds, before: bigint): ReadPetLine {
  const parsed = parseJson(line)
  if (!parsed.ok) return { ok: false, problems: [`Cannot read it as JSON: ${parsed.problem}`] }
  const sent = parsed.value
  if (!isJsonObject(sent)) {
    return { ok: false, problems: [invalid('it', sent, { expected: 'an object with name and categoryId' })] }
  }
  const id = readId(sent, ids, before)
  const read = readNewPet(sent)
  const unknown = unknownNames('property', Object.keys(sent), petProperties)
  if (read.ok && id.problem === undefined && unknown.length === 0) {
    return { ok: true, pet: id.value === undefined ? read.pet : { id: id.value, ...read.pet } }
  }
  const problems = [...(id.problem === undefined ? [] : [id.problem]), ...(read.ok ? [] : read.problems)]
  return { ok: false, problems: [...problems, ...unknown] }
}

type ReadId = { readonly value?: bigint; readonly problem?: string }

function readId(sent: Readonly<Record<string, unknown>>, ids: ImportIds, before: bigint): ReadId {
  const given = Object.hasOwn(sent, 'id')
  const value = given ? int64.read(sent['id']) : undefined
  if (given && (value === undefined || value < 1n)) {
    return { problem: invalid('id', sent['id'], { expected: `an integer from 1 to ${int64Max}` }) }
  }
  const problem = ids === 'keep' ? keptIdProblem(value, before) : undefined
  if (problem !== undefined) return { problem }
  return value === undefined ? {} : { value }
}
