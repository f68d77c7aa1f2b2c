import { chromium, nginx, pgbouncer } from './debian.ts'
import { startShared } from './postgres.ts'

/**
 * A program that `npm test` starts once. It installs missing Debian packages in CI, starts the PostgreSQL server that the test
 * files share, prints the variables by which they find it as one line of JSON, and stops when its stdin ends.
 */
await using stack = new AsyncDisposableStack()
// After Ctrl-C, `npm test` ends, and with it this program's stdin.
process.on('SIGINT', () => {})
await chromium()
await nginx()
await pgbouncer()
process.stdout.write(`${JSON.stringify(await startShared(stack))}\n`)
for await (const _ of Bun.stdin.stream()) {
  // Nothing is written to it; its end is the signal to stop.
}
