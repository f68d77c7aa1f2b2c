import { maskKeys } from '../api-key.ts'
import { readCode, SetupError, StoreDamaged, StoreError, StoreUnavailable } from '../errors.ts'
import { withAdvice } from './advice.ts'
import {
  type CommandGroup,
  command,
  describeUnknown,
  type Entry,
  formatHelp,
  lastWord,
  readCommand,
} from './arguments.ts'
import { asCalled, createProcessIo, exitCode, type Io, versionLine } from './output.ts'
import { unknownVariables } from './settings.ts'

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
    const warn = () => {
      // version reads no variable.
      const warnings = name === 'version' ? [] : unknownVariables(io.env, io.program)
      for (const warning of warnings) io.err(`petstore: ${warning}\n`)
    }
    // They log the warnings themselves, if they run.
    const isServer = name === 'serve' || name === 'demo'
    if (!isServer) warn()
    const code = await run(await load(), rest, io)
    if (isServer && code === exitCode.usage) warn()
    return code
  } catch (error) {
    // The reader of a pipe has read enough: `keys list | head -1`.
    if (readCode(error) === 'EPIPE') return exitCode.success
    io.err(`petstore: ${maskKeys(asCalled(describeError(error), io.program))}\n`)
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
    if (asksForHelp(args)) return showHelp(entry, io)
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

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end === -1 ? undefined : end).some(arg => arg === '--help' || arg === '-h')
}

async function showHelp(entry: Entry, io: Io): Promise<number> {
  await io.out(formatHelp(entry, io.program))
  return exitCode.success
}

function refuse(problems: readonly string[], io: Io): number {
  for (const problem of problems) io.err(`petstore: ${maskKeys(asCalled(problem, io.program))}\n`)
  return exitCode.usage
}

function describeError(error: unknown): string {
  if (error instanceof SetupError) return error.message
  if (error instanceof StoreError) return withAdvice(error)
  if (error instanceof StoreUnavailable) {
    const { problem = 'temporary', cause } = error
    const isRefused = error.problem ? 'The store refuses this' : 'The store does not answer'
    const what = error instanceof StoreDamaged ? 'The store is damaged' : isRefused
    return withAdvice({ message: `${what} (${error.message})`, problem, cause })
  }
  // A bug in the program: print the stack.
  return (error instanceof Error && error.stack) || String(error)
}

if (import.meta.main) {
  // process.exit would lose output that a pipe has not taken yet.
  process.exitCode = await main(process.argv.slice(2), createProcessIo())
}
