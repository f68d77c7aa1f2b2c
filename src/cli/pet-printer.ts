import type { Pet } from '../client/index.ts'
import { petToJson } from '../pet.ts'
import type { Io } from './io.ts'
import { table } from './table.ts'
import { visible } from './visible.ts'

/** Prints animals as they come. */
export interface PetPrinter {
  /** False when nobody reads on, as after `| head -1`: then there is no use in going on. */
  print(pets: readonly Pet[]): Promise<boolean>
  /** What has not been printed yet. */
  end(): Promise<void>
}

/** A line of JSON for each animal, or a table for people. */
export function createPetPrinter(json: boolean, io: Io): PetPrinter {
  return json ? jsonPrinter(io) : tablePrinter(io)
}

function jsonPrinter(io: Io): PetPrinter {
  return {
    print: pets => write(pets.map(pet => `${visible(petToJson(pet))}\n`).join(''), io),
    async end() {},
  }
}

/** A column is as wide as its widest cell, and a walk has no end that could be waited for: a new table begins. */
const rowsOfATableMax = 1_000

function tablePrinter(io: Io): PetPrinter {
  let rows: string[][] = []
  const flush = () => {
    const text = rows.length === 0 ? '' : table(columns, rows)
    rows = []
    return write(text, io)
  }
  return {
    async print(pets) {
      rows.push(...pets.map(rowOf))
      return rows.length < rowsOfATableMax || (await flush())
    },
    async end() {
      await flush()
    },
  }
}

const columns = ['ID', 'STATUS', 'CATEGORY', 'NAME']

/** The name comes last: only there can a cell be a thousand characters wide without pushing others away. */
function rowOf({ id, name, categoryId, status }: Pet): string[] {
  return [`${id}`, status ?? '-', `${categoryId}`, visible(name)]
}

async function write(text: string, io: Io): Promise<boolean> {
  try {
    await io.out(text)
    return true
  } catch (cause) {
    if ((cause as { code?: unknown }).code === 'EPIPE') return false
    throw cause
  }
}
