import { delimiter, join } from 'node:path'
import { generatorsFolder } from './clients.ts'

/** Runs shell commands, and gives what they print on stdout. Throws with all their output if they fail. */
export async function shell(
  commands: string,
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const PATH = [join(generatorsFolder, 'node_modules/.bin'), process.env['PATH']].join(delimiter)
  const child = Bun.spawn(['bash', '-euo', 'pipefail', '-c', commands], {
    cwd,
    env: { ...process.env, ...env, PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (exitCode !== 0) throw new Error(`${commands}\nin ${cwd} ended with ${exitCode}:\n${stdout}${stderr}`)
  return stdout
}
