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

  const command = [process.execPath, '--no-env-file', program]
  const ended = await run(command, { cwd: folder.path, waitMs: 10_000 })
  expect(ended).toEqual({ exitCode: 0, stdout: '', stderr: '' })
  expect(readdirSync(folder.path)).toEqual(['imports.ts'])
})

/** The packages that modules and their static imports load; dynamic imports do not count. */
function importedFrom(entries: readonly string[]): readonly string[] {
  const transpiler = new Bun.Transpiler({ loader: 'ts' })
  const seen = new Set(entries)
  const others = new Set<string>()
  for (const file of seen) {
    for (const { kind, path } of transpiler.scanImports(readFileSync(file, 'utf8'))) {
      if (kind !== 'import-statement' || path.endsWith('.json')) continue
      if (path.startsWith('.')) seen.add(join(dirname(file), path))
      else others.add(path)
    }
  }
  return [...others].sort()
}

// Each module takes milliseconds to load; node:tty, which process.stdout needs, took almost half of a start.
test('a server starts with these modules alone', () => {
  const entries = ['main', 'serve'].map(name => join(projectFolder, `src/cli/${name}.ts`))
  expect(importedFrom(entries)).toEqual(['bun:sqlite', 'node:fs', 'node:path', 'node:util'])
})

// Only the command line knows its flags and variables. `PETSTORE_API_KEY` is the name of that key in the log.
test('stores and HTTP name no flag, no variable and no command', () => {
  const known =
    /DATABASE_URL|PETSTORE_(?!API_KEY)|--(keep-ids|database-pool|port|host)|petstore (restore|serve)|new SetupError/
  const files = [...new Bun.Glob('src/**/*.ts').scanSync({ cwd: projectFolder })]
  const sources = files.filter(file => /^src\/(errors|store-contract|(store|http)\/.*)(?<!\.test)\.ts$/.test(file))
  expect(sources.length).toBeGreaterThan(20)
  const withoutComments = (file: string) =>
    readFileSync(join(projectFolder, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
  expect(sources.filter(file => known.test(withoutComments(file)))).toEqual([])
})
