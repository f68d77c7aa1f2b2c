// What commands show: tables, questions, progress.

import { type Io, isTerminal, visible } from './output.ts'

/** Columns as wide as their widest cell, with two spaces between them. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map(row => Bun.stringWidth(row[column] ?? ''))))
  const pad = (cell: string, column: number) => cell + ' '.repeat((widths[column] ?? 0) - Bun.stringWidth(cell))
  return all.map(row => `${row.map(pad).join('  ').trimEnd()}\n`).join('')
}

/** `1 animal`, `1,000 animals` */
export function animals(count: number | bigint): string {
  return `${count.toLocaleString('en')} ${BigInt(count) === 1n ? 'animal' : 'animals'}`
}

/** A pipe must not answer a question: without a terminal, a command that asks needs --yes. */
export function confirmationProblems(yes: boolean | undefined): readonly string[] {
  return yes || (isTerminal(2) && process.stdin.isTTY) ? [] : ['Cannot ask without a terminal: use --yes']
}

/** Whether the next line of stdin is yes. */
export async function isConfirmed(question: string, io: Io): Promise<boolean> {
  await io.err(`${question} [y/N] `)
  for await (const line of console) return /^\s*y(es)?\s*$/i.test(line)
  // After Ctrl-D, the cursor is still behind the question.
  await io.err('\n')
  return false
}

/** `2030-01-31 12:00Z` */
export function minute(date: Date | undefined): string {
  return date ? `${date.toISOString().slice(0, 16).replace('T', ' ')}Z` : 'never'
}

export type Progress = ReturnType<typeof startProgress>

/** A percentage that is overwritten until it is stopped; where that is unwanted, or without a total, only the label. */
export function startProgress(label: string, io: Pick<Io, 'err' | 'isStyled'>, isTotalKnown = true) {
  const isShown = io.isStyled && isTotalKnown
  let shown: number | undefined
  const update = (fraction: number) => {
    const percent = Math.round(fraction * 100)
    if (isShown && percent !== shown) io.err(`\r${visible(label)} ${percent} %`, 'escaped')
    shown = percent
  }
  if (isShown) update(0)
  else io.err(`${label}\n`)
  return {
    update,
    [Symbol.dispose]() {
      if (isShown) io.err('\r\u001b[K', 'escaped')
    },
  }
}
