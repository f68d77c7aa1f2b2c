// Builds one executable that needs neither Node nor npm nor node_modules: dist/petstore, or `node scripts/build.mjs FILE`.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const outfile = resolve(process.argv[2] ?? join(root, 'dist/petstore'))
// A module that runs in a thread is a separate entry point.
const entries = ['cli/main.ts', 'store/sqlite/writer-thread.ts', 'store/sqlite/backup.ts']

mkdirSync(dirname(outfile), { recursive: true })
// Otherwise SIGINT would skip the removal of the folder.
process.once('SIGINT', () => process.exit(130))
// Assets keep their paths relative to the working folder, into which Bun also writes temporary files.
const cwd = mkdtempSync(join(dirname(outfile), '.build-'))
try {
  for (const file of browserFiles()) cpSync(join(root, 'src', file), join(cwd, file))
  const { status } = spawnSync(
    join(root, 'node_modules/.bin/bun'),
    [
      ...['build', '--compile', `--outfile=${outfile}`, `--define=PETSTORE_COMMIT=${JSON.stringify(commit())}`],
      // The executable ignores the working folder, as bin/petstore does.
      ...['--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig'],
      // A tsconfig.json above the output folder could add modules from there.
      '--tsconfig-override=/dev/null',
      // Each command loads only its own modules: a start takes a third of the time.
      '--splitting',
      // The bundled modules are all in one folder, and open threads and assets by relative paths. Assets are beside it.
      ...['--entry-naming=web/[name].[ext]', '--chunk-naming=web/[name]-[hash].[ext]'],
      ...entries.map(entry => join(root, 'src', entry)),
      ...readdirSync(cwd).map(name => `--asset=${name}`),
    ],
    { cwd, stdio: ['ignore', 'ignore', 'inherit'] },
  )
  if (status === 0) console.log(`Built ${relative('', outfile)}`)
  else process.exitCode = 1
} finally {
  rmSync(cwd, { recursive: true })
}

/** By their path in `src`: all files of the folders from which src/web/pages.ts serves some. */
function browserFiles() {
  const isServed = name => /\.(html|css|svg|ts)$/.test(name) && !name.endsWith('.test.ts')
  const filesIn = folder => readdirSync(join(root, 'src', folder)).map(name => join(folder, name))
  return ['', 'client', 'web', 'web/catalogue', 'web/docs'].flatMap(filesIn).filter(isServed)
}

/** `b0402dc`, or `b0402dc-dirty` with uncommitted changes. PETSTORE_COMMIT is for a build without the repository. */
function commit() {
  if (process.env.PETSTORE_COMMIT) return process.env.PETSTORE_COMMIT
  try {
    const args = ['describe', '--always', '--dirty', '--exclude=*', '--abbrev=7']
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return 'unknown'
  }
}
