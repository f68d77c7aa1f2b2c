import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { chartsOf } from './charts.ts'
import { documentOf } from './document.ts'
import type { Outcome } from './outcome.ts'
import { recordFile, recordOf } from './record.ts'

const root = join(import.meta.dir, '../..')
/** The packed service leaves this folder out. */
const chartsFolder = 'images'

/** Writes the document, its charts and the record; says which files. */
export function writeDocument(outcome: Outcome): readonly string[] {
  const docs = join(root, 'docs')
  const charts = chartsOf(outcome)
  mkdirSync(join(docs, chartsFolder), { recursive: true })
  const files = [
    ...charts.map(({ file, svg }) => [join(docs, chartsFolder, file), svg] as const),
    [join(docs, 'benchmarks.md'), documentOf(outcome, charts, chartsFolder)] as const,
    [recordFile, `${JSON.stringify(recordOf(outcome), null, 2)}\n`] as const,
  ]
  for (const [file, content] of files) writeFileSync(file, content)
  return files.map(([file]) => relative(root, file))
}
