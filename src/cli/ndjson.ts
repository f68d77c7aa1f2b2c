import { int64, invalid, unknownNames } from '../field.ts'
import { int64Max, isJsonObject } from '../int64.ts'
import { parseJson } from '../json.ts'
import { newPetFields, readNewPet } from '../pet.ts'
import { batchPetsMax, type ImportedPet, type ImportIds, keptIdProblem } from '../store.ts'

/** The number of the first invalid line, from 1, and its problem. */
export class InvalidLine extends Error {
  constructor(line: number, problem: string) {
    super(`line ${line}: ${problem}`)
  }
}

/** The same limit as for a request body. */
export const lineBytesMax = 64 * 1024

/** Reads animals in batches. Throws an {@link InvalidLine}. Only the last lines may be blank. Ignores a BOM. */
export async function* readPetLines(chunks: AsyncIterable<Uint8Array>, ids: ImportIds) {
  let batch: ImportedPet[] = []
  let number = 0
  let blank: number | undefined
  let previousId = 0n
  for await (const line of readLines(chunks)) {
    number++
    const text = number === 1 ? line.replace(/^\ufeff/, '') : line
    if (/^[ \t\r]*$/.test(text)) {
      blank ??= number
      continue
    }
    if (blank !== undefined) throw new InvalidLine(blank, 'it is blank: remove it')
    const pet = readPetLine(text, number, ids, previousId)
    previousId = pet.id ?? previousId
    batch.push(pet)
    if (batch.length < batchPetsMax) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

const importedId = { expected: `an integer from 1 to ${int64Max}` }

/** Reports every problem of a line. Unknown properties are refused: the import would lose them. */
function readPetLine(line: string, number: number, ids: ImportIds, previousId: bigint): ImportedPet {
  const parsed = parseJson(line)
  if (!parsed.ok) throw new InvalidLine(number, `it is not JSON: ${parsed.problem}`)
  const sent = parsed.value
  if (!isJsonObject(sent))
    throw new InvalidLine(number, invalid('it', sent, { expected: 'an object with name and categoryId' }))
  const hasId = Object.hasOwn(sent, 'id')
  const id = hasId ? int64.read(sent['id']) : undefined
  const isIdInvalid = hasId && (id === undefined || id < 1n)
  const keptProblem = ids === 'keep' ? keptIdProblem(id, previousId) : undefined
  const idProblem = isIdInvalid ? invalid('id', sent['id'], importedId) : keptProblem
  const read = readNewPet(sent)
  const problems = [
    ...(idProblem === undefined ? [] : [idProblem]),
    ...(read.ok ? [] : read.problems),
    ...unknownNames('property', Object.keys(sent), ['id', ...Object.keys(newPetFields)]),
  ]
  if (!read.ok || problems.length > 0) throw new InvalidLine(number, problems.join('; '))
  return id === undefined ? read.pet : { id, ...read.pet }
}

const lineFeed = 0x0a
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Lines of UTF-8 text. Only a line feed ends a line: a carriage return before it is white space to JSON. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = new Uint8Array()
  let number = 1
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk])
    let start = 0
    for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
      yield decodeLine(bytes.subarray(start, end), number++)
      start = end + 1
    }
    rest = bytes.subarray(start)
    // A line without an end must not fill the memory.
    if (rest.length > lineBytesMax) break
  }
  if (rest.length > 0) yield decodeLine(rest, number)
}

function decodeLine(bytes: Uint8Array, number: number): string {
  if (bytes.length > lineBytesMax) throw new InvalidLine(number, `it has more than ${lineBytesMax} bytes`)
  try {
    return utf8.decode(bytes)
  } catch {
    throw new InvalidLine(number, 'it is not valid UTF-8')
  }
}
