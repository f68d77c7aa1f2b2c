import { maskKeys } from '../api-key.ts'
import { readCode, SetupError, StoreError, StoreUnavailable } from '../errors.ts'
import { withAdvice } from './advice.ts'
import { readCommand, withoutUser } from './arguments.ts'
import { type CommandGroup, command, type Entry, formatHelp, lastWord } from './command.ts'
import { createProcessIo, exitCode, type Io, versionLine } from './output.ts'
import { findSimilar } from './similar.ts'
import { unknownVariables } from './unknown-variables.ts'

/** Each command loads only the modules that it needs. */
const commands = new Map<string, () => Promise<Entry>>([
  ['serve', async () => (await import('./serve.ts')).serveCommand],
  ['demo', async () => (await import('./demo.ts')).demoCommand],
  ['keys', async () => (await import('./keys.ts')).keysCommands],
  ['pets', async () => (await import('./pets.ts')).petsCommands],
  ['backup', async () => (await import('./backup.ts')).backupCommand],
  ['restore', async () => (await import('./backup.ts')).restoreCommand],
  ['export', async () => (await import('./transfer.ts')).exportCommand],
  ['import', async () => (await import('./transfer.ts')).importCommand],
  ['openapi', async () => (await import('./openapi.ts')).openApiCommand],
  ['conform', async () => (await import('./conform.ts')).conformCommand],
  ['health', async () => (await import('./health.ts')).healthCommand],
  ['version', async () => versionCommand],
])

const versionCommand = command({
  name: 'version',
  summary: 'Show the version, the commit and the platform',
  options: {},
  examples: ['petstore version'],
  async run(_, io) {
    await io.out(`${versionLine}\n`)
  },
})

export async function main(args: readonly string[], io: Io): Promise<number> {
  try {
    const [first = '', ...rest] = args
    const name = /^(--version|-v)$/.test(first) ? 'version' : first
    const load = commands.get(name)
    if (!load) return await run(await program(), args, io)
    for (const warning of unknownVariables(io.env, io.program)) io.err(`petstore: ${warning}\n`)
    return await run(await load(), rest, io)
  } catch (error) {
    // The reader of a pipe has read enough: `keys list | head -1`.
    if (readCode(error) === 'EPIPE') return exitCode.success
    io.err(`petstore: ${maskKeys(describeError(error))}\n`)
    return exitCode.failure
  }
}

async function program(): Promise<CommandGroup> {
  return {
    name: '',
    summary: "Serves a store's catalogue of animals over HTTP",
    commands: await Promise.all([...commands.values()].map(load => load())),
    examples: ['petstore demo', 'petstore serve', 'petstore keys create --name till', 'petstore help keys create'],
  }
}

/** Runs the command that `args` name, or prints the help. */
async function run(entry: Entry, args: readonly string[], io: Io): Promise<number> {
  if ('run' in entry) {
    const end = args.indexOf('--')
    const asksForHelp = args.slice(0, end === -1 ? undefined : end).some(arg => /^(--help|-h)$/.test(arg))
    if (asksForHelp) return showHelp(entry, io)
    const { values, problems } = readCommand(entry, args, io)
    return problems.length > 0 ? refuse(problems, io) : ((await entry.run(values, io)) ?? exitCode.success)
  }
  const [name, ...rest] = args
  if (name !== undefined && /^(help|--help|-h)$/.test(name)) {
    const words = rest.filter(word => !word.startsWith('-'))
    return words.length > 0 ? run(entry, [...words, '--help'], io) : showHelp(entry, io)
  }
  if (name === undefined) {
    io.err(formatHelp(entry, io.program))
    return exitCode.usage
  }
  const found = entry.commands.find(command => lastWord(command) === name)
  return found ? run(found, rest, io) : refuse([describeUnknown(name, entry, io.program)], io)
}

function describeUnknown(name: string, { name: group, commands }: CommandGroup, program: string): string {
  const help = `${`${program} ${group}`.trimEnd()} --help lists the commands`
  // A value behind the name may be a key or a password.
  const shown = withoutUser(name).replace(/=.*|(?<=^-[^-]).*/s, '')
  if (name.startsWith('-')) return `Unknown option ${shown}: name a command first; ${help}`
  const near = findSimilar(name, commands.map(lastWord))
  return `Unknown command ${shown}: ${near ? `did you mean ${near}?` : help}`
}

async function showHelp(entry: Entry, io: Io): Promise<number> {
  await io.out(formatHelp(entry, io.program))
  return exitCode.success
}

function refuse(problems: readonly string[], io: Io): number {
  for (const problem of problems) io.err(`petstore: ${maskKeys(problem)}\n`)
  return exitCode.usage
}

function describeError(error: unknown): string {
  const isSystemError = error instanceof Error && 'syscall' in error
  if (error instanceof SetupError || isSystemError) return error.message
  if (error instanceof StoreError) return withAdvice(error)
  if (error instanceof StoreUnavailable) {
    const { problem = 'temporary' } = error
    return withAdvice({ message: `The store failed (${error.message})`, problem })
  }
  // A bug in the program: print the stack, or where the syntax is wrong.
  return Bun.inspect(error)
}

if (import.meta.main) {
  // process.exit would lose output that a pipe has not taken yet.
  process.exitCode = await main(process.argv.slice(2), createProcessIo())
  // `bun --watch` would wait for the next change, which helps only after a failure. Ctrl-C has to end that, too.
  if (process.execArgv.includes('--watch')) {
    if (process.exitCode === exitCode.success) process.exit()
    process.removeAllListeners('SIGINT')
  }
}
