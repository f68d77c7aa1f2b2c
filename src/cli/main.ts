import { SetupError, StoreDamaged, StoreUnavailable } from '../errors.ts'
import { exitCode, type Io, Misuse } from './io.ts'
import { createProcessIo } from './process-io.ts'

/** Runs one command and says how it ended: 0 success, 1 failure, 2 misuse. */
export async function main(args: readonly string[], io: Io): Promise<number> {
  try {
    return await run(withoutProductPrefix(args), io)
  } catch (error) {
    return report(error, io)
  }
}

/** Each way loads only what it needs. */
async function run(args: readonly string[], io: Io): Promise<number> {
  if (args[0] === 'serve') {
    const [{ serve }, { plainFlags }] = await Promise.all([import('./serve.ts'), import('./plain-flags.ts')])
    const flags = plainFlags(args.slice(1))
    if (flags) return serve(flags, io)
  }
  return (await import('./program.ts')).runProgram(args, io)
}

/** `--petstore-public-url` is PETSTORE_PUBLIC_URL to the letter; `--public-url` is what one types. */
function withoutProductPrefix(args: readonly string[]): string[] {
  const end = args.indexOf('--')
  return args.map((arg, index) => (end === -1 || index < end ? arg.replace(/^--petstore-(?=.)/, '--') : arg))
}

function report(error: unknown, io: Io): number {
  if (error instanceof Misuse) {
    for (const problem of error.problems) io.err(`petstore: ${problem}\n`)
    return exitCode.misuse
  }
  if (error instanceof SetupError) {
    io.err(`petstore: ${error.message}\n`)
    return exitCode.failure
  }
  if (error instanceof StoreDamaged) {
    io.err(`petstore: The store is damaged (${error.message}): restore a backup\n`)
    return exitCode.failure
  }
  if (error instanceof StoreUnavailable) {
    io.err(`petstore: The store does not answer: ${error.message}; try again\n`)
    return exitCode.failure
  }
  // Whoever read from us has read enough: `keys list | head -1`.
  if ((error as { code?: string } | undefined)?.code === 'EPIPE') return exitCode.success
  // A defect of ours: what whoever mends it needs.
  io.err(`petstore: ${(error instanceof Error && error.stack) || String(error)}\n`)
  return exitCode.failure
}

if (import.meta.main) {
  // Not process.exit: that would cut off what a pipe has not taken yet.
  process.exitCode = await main(process.argv.slice(2), createProcessIo())
}
