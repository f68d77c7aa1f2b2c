import { Command, CommanderError } from 'commander'
import { SetupError, StoreUnavailable } from '../fault.ts'
import { addSetting, command } from './command.ts'
import { exitCode, type Io, Misuse } from './io.ts'
import { type Flags, settings } from './settings.ts'
import { version } from './version.ts'

/** Runs one command and says how it ended: 0 success, 1 failure, 2 misuse. */
export async function main(args: readonly string[], io: Io): Promise<number> {
  let code: number = exitCode.success
  const ended = (given: number) => {
    code = given
  }
  try {
    const program = await commands(io, ended, args[0])
    await program.parseAsync(withoutProductPrefix(args), { from: 'user' })
    return code
  } catch (error) {
    return report(error, io)
  }
}

/** `--petstore-public-url` is PETSTORE_PUBLIC_URL to the letter; `--public-url` is what one types. */
function withoutProductPrefix(args: readonly string[]): string[] {
  const end = args.indexOf('--')
  return args.map((arg, index) => (end === -1 || index < end ? arg.replace(/^--petstore-/, '--') : arg))
}

async function commands(io: Io, ended: (code: number) => void, first: string | undefined): Promise<Command> {
  const program = new Command('petstore')
    .description("Keeps a store's catalogue of animals and serves it over HTTP.")
    .version(version)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      // Whoever closes the pipe has read enough of the help.
      writeOut: text => void io.out(text).catch(() => {}),
      writeErr: text => io.err(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'petstore: ')),
    })
    .exitOverride()
    .addHelpText('after', examples)

  const serveCommand = command(program, 'serve', 'run the server until Ctrl-C or SIGTERM')
  for (const setting of Object.values(settings)) addSetting(serveCommand, setting)
  serveCommand
    .addHelpText(
      'after',
      '\nA flag wins over the variable of the same name; all mistakes are reported together.',
    )
    .action(async (flags: Flags) => {
      const { serve } = await import('./serve.ts')
      ended(await serve(flags, io))
    })

  // A server that starts need not wait for what only other commands use.
  if (first !== 'serve') (await import('./other-commands.ts')).addOtherCommands(program, io, ended)
  return program
}

const examples = `
Examples:
  petstore serve                                  serve data/petstore.db on http://127.0.0.1:8080/v1
  petstore serve --port 9000 --host 0.0.0.0       listen elsewhere
  petstore keys create --name till                print a new key
  petstore keys create --name screen --read-only --expires 90d
  petstore keys revoke till
  petstore backup pets-2030-01-31.db              copy the store while it runs
  petstore export animals.ndjson                  write every animal to a file, a line each
  petstore import animals.ndjson                  add them to another store, all or none
  petstore pets list --status available           through HTTP, with the key in PETSTORE_API_KEY
  petstore pets add Rex --category 7`

function report(error: unknown, io: Io): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.success : exitCode.misuse
  if (error instanceof Misuse) {
    for (const problem of error.problems) io.err(`petstore: ${problem}\n`)
    return exitCode.misuse
  }
  if (error instanceof SetupError) {
    io.err(`petstore: ${error.message}\n`)
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
  // What goes wrong with stdout reaches whoever wrote to it; without a listener it would end the process first.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  // Not process.exit: that would cut off what a pipe has not taken yet.
  process.exitCode = await main(process.argv.slice(2), {
    env: process.env,
    out: text =>
      new Promise((resolve, reject) =>
        process.stdout.write(text, error => (error ? reject(error) : resolve())),
      ),
    err: text => process.stderr.write(text),
    isTerminal: process.stderr.isTTY === true,
  })
}
