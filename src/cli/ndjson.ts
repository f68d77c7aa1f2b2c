import { isUtf8 } from 'node:buffer'
import { SetupError } from '../errors.ts'
import { int64, invalid, missing, unknownNames } from '../field.ts'
import { int64Max, isJsonObject } from '../int64.ts'
import { readJson } from '../json.ts'
import { newPetNames, readNewPet } from '../pet.ts'
import { batchPetsMax, type ImportedPet, type ImportIds } from '../store-contract.ts'
import { visible } from './output.ts'

const namedLinesMax = 20

/** The same limit as for a request body. */
export const lineBytesMax = 64 * 1024

/**
 * Reads animals in batches, up to the first invalid line. Then checks the other lines and throws a SetupError with the
 * problems of the first ones. Ignores blank lines. `label` is the name of the input.
 */
export async function* readPetLines(chunks: AsyncIterable<Uint8Array>, ids: ImportIds, label: string) {
  const problems: string[] = []
  let invalidLines = 0
  let batch: ImportedPet[] = []
  let number = 0
  let previousId = 0n
  for await (const line of readLines(chunks)) {
    number++
    const read = readPetLine(line, ids, previousId)
    if (typeof read === 'string') {
      invalidLines++
      if (problems.length < namedLinesMax) problems.push(`\n  line ${number}: ${visible(read)}`)
    } else if (read) {
      previousId = read.id ?? previousId
      if (invalidLines === 0) batch.push(read)
    }
    if (batch.length < batchPetsMax) continue
    yield batch
    batch = []
  }
  if (invalidLines > 0) {
    const found = `invalid lines: ${invalidLines}${problems.join('')}`
    throw new SetupError(`Cannot import ${label}: nothing was imported; ${found}`)
  }
  if (batch.length > 0) yield batch
}

const utf8 = new TextDecoder()
const arrayAdvice = "convert it with jq -c '.[]' (jq before 1.7 rounds large integers)"

/** An animal, or what is wrong, or undefined for a blank line. Refuses properties that the import would lose. */
function readPetLine(line: Uint8Array, ids: ImportIds, previousId: bigint): ImportedPet | string | undefined {
  // Without a byte order mark.
  const text = utf8.decode(line)
  if (text.trimStart().startsWith('[')) return `it begins an array; ${arrayAdvice}`
  if (line.length > lineBytesMax) return `it has more than ${lineBytesMax} bytes`
  if (text.trim() === '') return undefined
  if (!isUtf8(line)) return 'it is not valid UTF-8'
  const parsed = readJson(text)
  if (!parsed.ok) return `it is not JSON: ${parsed.problem}${parsed.at ? ` at column ${parsed.at.column}` : ''}`
  const sent = parsed.value
  if (!isJsonObject(sent)) return invalid('it', sent, { expected: 'an object with name and categoryId' })
  const id = int64.read(sent['id'])
  const read = readNewPet(sent)
  const problems = [
    ...(ids === 'keep' ? idProblems(sent['id'], id, previousId) : []),
    ...(read.ok ? [] : read.problems),
    ...unknownNames('property', Object.keys(sent), ['id', ...newPetNames]),
  ]
  if (!read.ok || problems.length > 0) return problems.join('; ')
  return id === undefined ? read.pet : { id, ...read.pet }
}

/** New ids continue from the highest kept one: this leaves a billion of them. */
const keptIdMax = int64Max - 1_000_000_000n
const keptId = { expected: `an integer from 1 to ${keptIdMax}` }

/** What is wrong with an id to keep, after the previous one (0 if it is the first). */
function idProblems(sent: unknown, id: bigint | undefined, previous: bigint): readonly string[] {
  if (sent === undefined) return [missing('id', keptId)]
  if (id === undefined || id < 1n || id > keptIdMax) return [invalid('id', sent, keptId)]
  return id <= previous ? [`id is ${id} after ${previous}: expected ascending ids`] : []
}

/** Only a line feed ends a line: a carriage return before it is white space to JSON. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest = new Uint8Array()
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk])
    let start = 0
    for (let end = bytes.indexOf('\n'); end !== -1; end = bytes.indexOf('\n', start)) {
      yield bytes.subarray(start, end)
      start = end + 1
    }
    // The rest of a line that is too long is not stored: it must not fill the memory.
    rest = bytes.subarray(start, start + lineBytesMax + 1)
  }
  if (rest.length > 0) yield rest
}
