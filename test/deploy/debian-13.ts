import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { downloadMs, projectFolder, readOutput } from '../support/process.ts'

/** What the command prints. Throws if it fails. */
export async function shell(...command: readonly string[]): Promise<string> {
  const env = Object.fromEntries(Object.entries(process.env).map(([name, value = '']) => [name, value]))
  // It may download a package.
  return (await readOutput(command, { cwd: projectFolder, env, waitMs: downloadMs })).trim()
}

/** Downloads a package of Debian 13 from this machine's mirror into a folder, and extracts it there. */
export async function extractFromDebian13(name: string, folder: string): Promise<void> {
  for (const each of ['lists', 'cache']) mkdirSync(join(folder, each, 'partial'), { recursive: true })
  const [mirror] = /\S+\/debian\/?$/m.exec(await shell('apt-get', 'indextargets', '--format', '$(REPO_URI)')) ?? []
  writeFileSync(join(folder, 'sources'), `deb ${mirror} trixie main\n`)
  const options = ['Etc::SourceList=sources', 'Etc::SourceParts=none', 'State::Lists=lists', 'Cache=cache']
  const get = `apt-get ${options.map(each => `-o Dir::${each.replace('=', `=${folder}/`)}`).join(' ')}`
  await shell('sh', '-euc', `cd ${folder}; ${get} update; ${get} download ${name}; dpkg-deb --extract *.deb .`)
}
