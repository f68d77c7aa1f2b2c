import { Command, CommanderError } from 'commander'
import { addSetting, command } from './command.ts'
import { exitCode, type Io } from './io.ts'
import { addOtherCommands } from './other-commands.ts'
import { type Flags, settings } from './settings.ts'
import { version } from './version.ts'

/** Runs what commander makes of the arguments: any command, the help, or why it is none. */
export async function runProgram(args: readonly string[], io: Io): Promise<number> {
  let code: number = exitCode.success
  const ended = (given: number) => {
    code = given
  }
  try {
    await createProgram(io, ended).parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return error.exitCode === 0 ? exitCode.success : exitCode.misuse
  }
}

function createProgram(io: Io, ended: (code: number) => void): Command {
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

  addOtherCommands(program, io, ended)
  return program
}

const examples = `
Examples:
  petstore serve                                  serve data/petstore.db on http://127.0.0.1:8080/v1
  petstore serve --port 9000 --host 0.0.0.0       listen elsewhere
  petstore keys create --name till                print a new key
  petstore keys create --name screen --permission read-only --expires 90d
  petstore keys create --name prometheus --permission metrics
  petstore keys revoke till
  petstore backup pets-2030-01-31.db              copy the store while it runs
  petstore export animals.ndjson                  write every animal to a file, a line each
  petstore import animals.ndjson                  add them to another store, all or none
  petstore pets list --status available           through HTTP, with the key in PETSTORE_API_KEY
  petstore pets add Rex --category 7`
