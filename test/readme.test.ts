import { expect, test } from 'bun:test'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  network,
  projectFolder,
  readOutput,
  readProjectFile,
  run,
  startServer,
  temporaryFolder,
  downloadMs as waitMs,
} from './support/process.ts'

const readme = readProjectFile('README.md')

/** The fenced blocks of some languages, in order. */
function blocksIn(text: string, ...languages: string[]): string[] {
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, language = '', block = '']) =>
    languages.includes(language) ? [block] : [],
  )
}

test('npm start works in a fresh clone, and prints what the README shows, as do its five minutes', async () => {
  using folder = temporaryFolder()
  // Another user than the one who runs the tests may own the files.
  const git = ['git', '-c', 'safe.directory=*', 'ls-files', '-z', '-co', '--exclude-standard']
  for (const file of (await readOutput(git, { cwd: projectFolder })).split('\0')) {
    const from = join(projectFolder, file)
    if (file !== '' && existsSync(from)) cpSync(from, join(folder.path, file))
  }
  const env = { ...network, PORT: '0' }
  await using server = await startServer({ command: ['npm', 'start'], cwd: folder.path, env, waitMs })
  const [key = ''] = /pets_\w{36}/.exec(server.stdout) ?? []

  const host = '127.0.0.1:8080'
  const [greeting = ''] = blocksIn(readme, 'text')
  expect(server.stdout).toContain(greeting.replaceAll('pets_...', key).replaceAll(host, new URL(server.url).host))

  const [, section = ''] = /\n## Five minutes\n([\s\S]*?)\n## /.exec(readme) ?? []
  const minutes = section.replace('pets_...', key).replaceAll(host, new URL(server.url).host)
  const [setup = '', ...steps] = minutes.split(/^(?=```sh$)/m).slice(1)
  const commands = [setup, ...steps].flatMap(step => blocksIn(step, 'sh')).join("printf '\\036'\n")
  const script = `set -euo pipefail\n${commands}`
  const { exitCode, stdout, stderr } = await run(['bash', '-c', script], { cwd: folder.path, waitMs })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const printed = stdout.replaceAll('\r', '').split('\u001e').slice(1)
  expect(printed).toEqual(steps.flatMap(step => blocksIn(step, 'json', 'text')))

  expect(await server.stop('SIGTERM')).toMatchObject({ exitCode: 0 })
})
