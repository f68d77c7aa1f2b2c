import { expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './support/folder.ts'
import { projectFolder, run, testMsMax } from './support/process.ts'

test(
  'importing every module prints nothing, starts nothing and ends by itself',
  async () => {
    using folder = temporaryFolder()
    const files = [...new Bun.Glob('src/**/*.ts').scanSync({ cwd: projectFolder })]
    const modules = files.filter(file => !file.endsWith('.test.ts')).map(file => join(projectFolder, file))
    expect(modules.length).toBeGreaterThan(20)
    const program = join(folder.path, 'imports.ts')
    writeFileSync(program, modules.map(module => `import ${JSON.stringify(module)}\n`).join(''))

    const command = [process.execPath, '--no-env-file', program]
    const ended = await run(command, { cwd: folder.path, waitMs: 10_000 })
    expect(ended).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    expect(readdirSync(folder.path)).toEqual(['imports.ts'])
  },
  testMsMax,
)
