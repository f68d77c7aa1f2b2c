import { Command, CommanderError } from 'commander'
import { SetupError, StoreUnavailable } from '../fault.ts'
import { backUpStore } from './backup.ts'
import { addConformCommand } from './conform.ts'
import { exitCode, type Io, Misuse } from './io.ts'
import { type CreateKeyOptions, createKey, listKeys, revokeKey } from './keys.ts'
import { addPetsCommands } from './pets.ts'
import { serve } from './serve.ts'
import { type Flags, type Setting, settings } from './settings.ts'
import { version } from './version.ts'

/** Runs one command and says how it ended: 0 success, 1 failure, 2 misuse. */
export async function main(args: readonly string[], io: Io): Promise<number> {
  let code: number = exitCode.success
  const program = commands(io, ended => {
    code = ended
  })
  try {
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

function commands(io: Io, ended: (code: number) => void): Command {
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
    .action(async (flags: Flags) => ended(await serve(flags, io)))

  const keys = command(program, 'keys', 'make, list and revoke API keys')
  const create = command(
    keys,
    'create',
    'make a key and print it alone on stdout; it is shown only this once',
  )
    .option('--name <name>', 'what people call it, in keys list (required)')
    .option('--expires <when>', '90d, 12h, 4w, 1y from now, or a date such as 2030-01-31 (default: never)')
    .option('--read-only', 'may list and fetch, but not add')
  addSetting(create, settings.databaseUrl).action(async (options: CreateKeyOptions & Flags) =>
    createKey(options, options, io),
  )
  const list = command(keys, 'list', 'show all keys: by first characters, never whole').option(
    '--json',
    'for programs: a JSON array',
  )
  addSetting(list, settings.databaseUrl).action(async (options: { json?: boolean }) =>
    listKeys(options, options as Flags, io),
  )
  const revoke = command(keys, 'revoke', 'end a key; running servers refuse it within 5 seconds').argument(
    '<which>',
    "the key's name, its first characters (as keys list shows them), or the whole key",
  )
  addSetting(revoke, settings.databaseUrl).action(async (which: string, flags: Flags) =>
    revokeKey(which, flags, io),
  )

  const backup = command(
    program,
    'backup',
    'copy the running store into a new file, and check the copy',
  ).argument('<file>', 'where to; a file that is there already is not overwritten')
  addSetting(backup, settings.databaseUrl).action(async (file: string, flags: Flags) =>
    backUpStore(file, flags, io),
  )

  addPetsCommands(program, io)
  addConformCommand(program, io, ended)
  return program
}

function command(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).summary(description)
}

function addSetting(to: Command, { flag, placeholder, variable, help }: Setting): Command {
  return to.option(`--${flag} <${placeholder}>`, `${help} [${variable}]`)
}

const examples = `
Examples:
  petstore serve                                  serve data/petstore.db on http://127.0.0.1:8080/v1
  petstore serve --port 9000 --host 0.0.0.0       listen elsewhere
  petstore keys create --name till                print a new key
  petstore keys create --name screen --read-only --expires 90d
  petstore keys revoke till
  petstore backup pets-2030-01-31.db              copy the store while it runs
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
  io.err(`petstore: ${error instanceof Error ? error.stack : String(error)}\n`)
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
