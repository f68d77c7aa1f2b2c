import type { Outcome } from './outcome.ts'
import { type Table, toText } from './table.ts'
import {
  careTable,
  footprintTable,
  growthTable,
  postgresTable,
  stepsTable,
  targetTable,
  workTables,
} from './tables.ts'

/** The whole outcome, for a terminal. */
export function printOutcome(outcome: Outcome): string {
  const tables: readonly (Table | undefined)[] = [
    ...workTables(outcome),
    footprintTable(outcome),
    postgresTable(outcome),
    growthTable(outcome),
    careTable(outcome),
    stepsTable(outcome),
    targetTable(outcome),
  ]
  const shown = tables.filter(table => table !== undefined && table.rows.length > 0) as readonly Table[]
  return `${shown.map(toText).join('\n\n')}\n`
}
