import type { SQL } from 'bun'

/** One column of many rows, as a parameter: a statement then has the same text for one row and for a thousand. */
export function texts<T>(sql: SQL, rows: readonly T[], of: (row: T) => string | null) {
  return sql.array(rows.map(of), 'TEXT')
}

export function integers<T>(sql: SQL, rows: readonly T[], of: (row: T) => bigint) {
  return sql.array(rows.map(of), 'BIGINT')
}
