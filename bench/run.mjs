// `npm run bench`: shows the help, or installs what the benchmark needs and starts it. Plain JavaScript for Node, because
// it runs before Bun is installed.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const usage = `Measures the petstore and other servers under the same loads. Needs Linux and wrk.

Usage: npm run bench -- [part…] [options]

Parts, all by default:
  peers            plain Bun, Elysia and Fastify, on SQLite
  processes        two processes on one port and one SQLite file
  postgres         plain Bun, on PostgreSQL
  instances        creations by one, two and four instances on PostgreSQL
  growth-sqlite    10 million animals instead of 10,000
  growth-postgres  the same on PostgreSQL
  libraries        libraries in place of parts of the petstore; not by default

Options:
  --pairs <n>         pairs of turns, each server for 2 s; 5 by default
  --load <name>       only this load: mix, list, pages, get or create
  --against <folder>  instead of parts, the petstore of another checkout, to see whether a change is faster

Prints tables for docs/benchmarks.md and docs/scaling.md.

Examples:
  npm run bench -- peers
  npm run bench -- peers --pairs 1
  npm run bench -- --against ../before --load get
`

const args = process.argv.slice(2)
const bench = fileURLToPath(new URL('.', import.meta.url))

// For the program that it starts.
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {})

function run(command, ...given) {
  const { status } = spawnSync(command, given, { cwd: `${bench}..`, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

if (args.includes('--help') || args.includes('-h')) {
  process.stdout.write(usage)
} else {
  run('node', 'scripts/setup.mjs', '--dev')
  run('npm', 'install', '--prefix', 'bench', '--no-save', '--no-audit', '--no-fund', '--loglevel=error')
  const program = args[0] === 'libraries' ? 'bench/libraries.js' : 'bench/main.ts'
  run('node_modules/.bin/bun', '--no-env-file', '--no-orphans', program, ...args)
}
