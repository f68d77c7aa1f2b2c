/** Rows of text, for a terminal and for a document. */
export interface Table {
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export function toText({ title, head, rows }: Table): string {
  const lines = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0)))
  const show = (line: readonly string[]) =>
    line
      .map((cell, column) =>
        isFigures(rows, column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  return [title, ...lines.map(line => `  ${show(line)}`)].join('\n')
}

export function toMarkdown({ head, rows }: Omit<Table, 'title'>): string {
  const show = (line: readonly string[]) => `| ${line.join(' | ')} |`
  const rule = head.map((_, column) => (isFigures(rows, column) ? '---:' : '---'))
  return [show(head), `|${rule.join('|')}|`, ...rows.map(show)].join('\n')
}

/** Figures stand under one another by their last digit, words by their first letter. */
function isFigures(rows: Table['rows'], column: number): boolean {
  return rows.every(row => /^[\d–]/.test(row[column] ?? ''))
}
