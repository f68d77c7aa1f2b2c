import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectFolder } from '../support/process.ts'

/** The documented configuration: `tcp` in front of PostgreSQL, `http` in front of instances. */
export function documentedHaproxy(mode: 'tcp' | 'http'): string {
  const document = readFileSync(join(projectFolder, 'docs/scaling.md'), 'utf8')
  const blocks = Array.from(document.matchAll(/^```haproxy\n([\s\S]*?)^```$/gm), ([, text = '']) => text)
  return blocks.find(text => text.includes(`mode ${mode}`)) ?? ''
}
