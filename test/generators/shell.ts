import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { petstore, projectFolder, readOutput } from '../support/process.ts'

export const generatorsFolder = join(projectFolder, 'test/generators')

/** Whether a program is missing. Says so on stderr. */
export function isSkipped(what: string, needs: readonly string[]): boolean {
  const missing = needs.filter(program => !Bun.which(program))
  if (missing.length > 0)
    process.stderr.write(`${what} is skipped, because these programs are missing: ${missing.join(', ')}\n`)
  return missing.length > 0
}

/** A work folder: a copy of the folder with that name, with our OpenAPI document in `openapi.json`. */
export async function newWorkFolder(name: string): Promise<string> {
  const folder = join(generatorsFolder, 'work', name)
  rmSync(folder, { recursive: true, force: true })
  cpSync(join(generatorsFolder, name), folder, { recursive: true })
  const { stdout } = await petstore(['openapi'], { cwd: folder })
  writeFileSync(join(folder, 'openapi.json'), stdout)
  return folder
}

/** Runs shell commands, and gives what they print on stdout. Throws with all their output if they fail. */
export function shell(commands: string, cwd: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
  const folders = [join(cwd, '.venv/bin'), join(generatorsFolder, 'node_modules/.bin'), process.env['PATH']]
  const env = { ...(process.env as Record<string, string>), ...more, PATH: folders.join(delimiter) }
  return readOutput(['bash', '-euo', 'pipefail', '-c', commands], { cwd, env, waitMs: 900_000 })
}
