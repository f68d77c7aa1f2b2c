import { int64, invalid, unknownNames } from '../field.ts'
import { int64Max, isJsonObject } from '../int64.ts'
import { readJson } from '../json.ts'
import { newPetNames, readNewPet } from '../pet.ts'
import { batchPetsMax, type ImportedPet, type ImportIds } from '../store-contract.ts'

const namedLinesMax = 20

/** Every invalid line is counted. The first ones have their problems: `line 7: name is missing`. */
export class InvalidLines extends Error {
  readonly problems: string[] = []
  count = 0

  add(line: number, problem: string): void {
    this.count++
    if (this.problems.length < namedLinesMax) this.problems.push(`line ${line}: ${problem}`)
  }
}

/** The same limit as for a request body. */
export const lineBytesMax = 64 * 1024

/**
 * Reads animals in batches, up to the first invalid line. Then checks the other lines and throws {@link InvalidLines}.
 * Only the last lines may be blank. Ignores a BOM.
 */
export async function* readPetLines(chunks: AsyncIterable<Uint8Array>, ids: ImportIds) {
  const invalidLines = new InvalidLines()
  let batch: ImportedPet[] = []
  let number = 0
  let lastNonBlank = 0
  let previousId = 0n
  for await (const line of readLines(chunks)) {
    number++
    const text = number === 1 && typeof line === 'string' ? line.replace(/^\ufeff/, '') : line
    if (typeof text === 'string' && /^[ \t\r]*$/.test(text)) continue
    while (++lastNonBlank < number) invalidLines.add(lastNonBlank, 'it is blank: remove it')
    const read = typeof text === 'string' ? readPetLine(text, ids, previousId) : text
    if ('problem' in read) invalidLines.add(number, read.problem)
    else previousId = read.id ?? previousId
    if ('problem' in read || invalidLines.count > 0) continue
    batch.push(read)
    if (batch.length < batchPetsMax) continue
    yield batch
    batch = []
  }
  if (invalidLines.count > 0) throw invalidLines
  if (batch.length > 0) yield batch
}

const importedId = { expected: `an integer from 1 to ${int64Max}` }

/** All that is wrong with a line. */
type InvalidLine = { readonly problem: string }

const arrayLine: InvalidLine = {
  problem:
    "it begins an array; convert it to lines: jq -c '.[]' pets.json | petstore import - (jq before 1.7 rounds large integers)",
}
const beginsArray = (text: string) => /^\ufeff?\s*\[/.test(text)

/** Refuses unknown properties: the import would lose them. */
function readPetLine(line: string, ids: ImportIds, previousId: bigint): ImportedPet | InvalidLine {
  if (beginsArray(line)) return arrayLine
  const parsed = readJson(line)
  if (!parsed.ok) {
    const where = parsed.at ? ` at column ${parsed.at.column}` : ''
    return { problem: `it is not JSON: ${parsed.problem}${where}` }
  }
  const sent = parsed.value
  if (!isJsonObject(sent)) return { problem: invalid('it', sent, { expected: 'an object with name and categoryId' }) }
  const hasId = Object.hasOwn(sent, 'id')
  const id = hasId ? int64.read(sent['id']) : undefined
  const isIdInvalid = hasId && (id === undefined || id < 1n)
  const keptProblem = ids === 'keep' ? keptIdProblem(id, previousId) : undefined
  const idProblem = isIdInvalid ? invalid('id', sent['id'], importedId) : keptProblem
  const read = readNewPet(sent)
  const problems = [
    ...(idProblem === undefined ? [] : [idProblem]),
    ...(read.ok ? [] : read.problems),
    ...unknownNames('property', Object.keys(sent), ['id', ...newPetNames]),
  ]
  if (!read.ok || problems.length > 0) return { problem: problems.join('; ') }
  return id === undefined ? read.pet : { id, ...read.pet }
}

/** New ids continue from the highest kept one: this leaves a billion of them. */
const keptIdMax = int64Max - 1_000_000_000n

/** What is wrong with an id to keep, after the previous one (0 if it is the first). */
function keptIdProblem(id: bigint | undefined, previous: bigint): string | undefined {
  if (id === undefined) return 'id is missing: to keep ids, every animal needs one'
  if (id < 1n || id > keptIdMax) return invalid('id', id, { expected: `an integer from 1 to ${keptIdMax}` })
  return id <= previous ? `id is ${id} after ${previous}: expected ascending ids` : undefined
}

const lineFeed = 0x0a
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Only a line feed ends a line: a carriage return before it is white space to JSON. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string | InvalidLine> {
  let rest = new Uint8Array()
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk])
    let start = 0
    for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
      yield decodeLine(bytes.subarray(start, end))
      start = end + 1
    }
    // The rest of a line that is too long is not stored: it must not fill the memory.
    rest = bytes.subarray(start, start + lineBytesMax + 1)
  }
  if (rest.length > 0) yield decodeLine(rest)
}

function decodeLine(bytes: Uint8Array): string | InvalidLine {
  if (bytes.length > lineBytesMax) {
    const start = Buffer.from(bytes.subarray(0, 100)).toString()
    return beginsArray(start) ? arrayLine : { problem: `it has more than ${lineBytesMax} bytes` }
  }
  try {
    return utf8.decode(bytes)
  } catch {
    return { problem: 'it is not valid UTF-8' }
  }
}
