import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { projectFolder, run, temporaryFolder } from './support/process.ts'

test('importing every module prints nothing, starts nothing and ends by itself', async () => {
  using folder = temporaryFolder()
  const files = [...new Bun.Glob('src/**/*.ts').scanSync({ cwd: projectFolder })]
  // The scripts of the pages start in a browser.
  const modules = files
    .filter(file => !/\.test\.ts$|^src\/web\/(?!pages)/.test(file))
    .map(file => join(projectFolder, file))
  expect(modules.length).toBeGreaterThan(20)
  const program = join(folder.path, 'imports.ts')
  writeFileSync(program, modules.map(module => `import ${JSON.stringify(module)}\n`).join(''))

  const ended = await run([process.execPath, '--no-env-file', program], { cwd: folder.path })
  expect(ended).toEqual({ exitCode: 0, stdout: '', stderr: '' })
  expect(readdirSync(folder.path)).toEqual(['imports.ts'])
})

// Each module takes milliseconds to load; node:tty, which process.stdout needs, took almost half of a start.
test('a server starts with these modules alone', () => {
  const transpiler = new Bun.Transpiler({ loader: 'ts' })
  const own = new Set(['main', 'serve'].map(name => join(projectFolder, `src/cli/${name}.ts`)))
  const others = new Set<string>()
  for (const file of own) {
    for (const { kind, path } of transpiler.scanImports(readFileSync(file, 'utf8'))) {
      // Dynamic imports load when they are reached.
      if (kind !== 'import-statement' || path.endsWith('.json')) continue
      if (path.startsWith('.')) own.add(join(dirname(file), path))
      else others.add(path)
    }
  }
  expect([...others].sort()).toEqual(['bun:sqlite', 'node:fs', 'node:path', 'node:util'])
})
