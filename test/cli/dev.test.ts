import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectFolder, startServer, temporaryFolder, until } from '../support/process.ts'

/** Stands in for the server: it prints its process id where the server prints its address. */
const standIn = `#!/bin/sh
echo "$$ serves http://127.0.0.1:1/v1. Stop with Ctrl-C."
exec sleep 60
`

test('npm run dev restarts the server after a change, and ends at Ctrl-C even if the server was killed', async () => {
  using folder = temporaryFolder()
  for (const name of ['src', 'bin']) mkdirSync(join(folder.path, name))
  writeFileSync(join(folder.path, 'bin/petstore'), standIn, { mode: 0o700 })
  const command = ['node', join(projectFolder, 'scripts/dev.mjs')]
  await using dev = await startServer({ cwd: folder.path, command })
  const pids = () => [...dev.stdout.matchAll(/^(\d+) serves/gm)].map(([, pid]) => Number(pid))
  const hasEnded = (pid: number) => {
    try {
      return !process.kill(pid, 0)
    } catch {
      return true
    }
  }
  const change = async (count: number) => {
    writeFileSync(join(folder.path, 'src/pet.ts'), `${count}`)
    const found = await until('another server', () => (pids().length === count ? pids() : undefined))
    expect(found.map(hasEnded)).toEqual(found.map((_, index) => index < count - 1))
    return found[count - 1] ?? 0
  }
  const kill = async (pid: number) => {
    process.kill(pid, 'SIGKILL')
    await until('the end of the server', () => hasEnded(pid) || undefined)
  }
  await kill(await change(2))
  await kill(await change(3))
  expect((await dev.stop('SIGINT')).exitCode).toBe(0)
})
