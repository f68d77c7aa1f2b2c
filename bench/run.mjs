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

Options:
  --pairs <n>         pairs of turns, each server for 2 s; 9 by default
  --load <name>       only this load: mix, list, pages, get, create; may be repeated
  --against <folder>  instead of parts, the petstore of another checkout, to see whether a change is faster

Prints tables for docs/benchmarks.md and docs/scaling.md.

Examples:
  npm run bench -- peers
  npm run bench -- peers --pairs 1
  npm run bench -- --against ../before --load get
`

const args = process.argv.slice(2)
const bench = fileURLToPath(new URL('.', import.meta.url))

function run(command, ...given) {
  const { status } = spawnSync(command, given, { cwd: `${bench}..`, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

if (args.includes('--help') || args.includes('-h')) {
  process.stdout.write(usage)
} else {
  run('node', 'scripts/setup.mjs', '--dev')
  run('npm', 'install', '--prefix', 'bench', '--no-save', '--no-audit', '--no-fund', '--loglevel=error')
  run('node_modules/.bin/bun', '--no-env-file', '--no-orphans', 'bench/main.ts', ...args)
}
