import { missing } from '../field.ts'
import { exitCode, type Io, UsageError } from './output.ts'

export interface Option {
  /** `--port <number>`, or `--json` for a switch. */
  readonly flag: string
  readonly help: string
  /** For the help. */
  readonly default?: string
  /** The environment variable that sets the same. */
  readonly variable?: string
}

export interface Argument {
  readonly name: string
  /** A valid value, in the words of a message: `a new file`. */
  readonly help: string
  readonly optional?: true
}

export interface Command {
  /** As it is typed after the program: `keys create`. */
  readonly name: string
  readonly summary: string
  readonly arguments?: readonly Argument[]
  readonly options?: readonly Option[]
  /** What else the help says. */
  readonly details?: string
  /** Lines to type, with `petstore` for the program. */
  readonly examples: readonly string[]
  /** Returns the exit code. */
  run(given: Given, io: Io): Promise<number>
}

export interface CommandGroup {
  readonly name: string
  readonly summary: string
  readonly commands: readonly (Command | CommandGroup)[]
  readonly examples: readonly string[]
}

/** Values by name, such as `--port`; `true` for a switch. */
export type Flags = Readonly<Record<string, string | undefined>>

export interface Given {
  readonly flags: Flags
  readonly values: readonly string[]
}

/** `--port` */
export function flagName({ flag }: Option): string {
  return flag.replace(/ .*/, '')
}

/** Runs the command that `args` name, or prints the help. */
export async function runCommand(
  entry: Command | CommandGroup,
  args: readonly string[],
  io: Io,
): Promise<number> {
  if (asksForHelp(args, entry)) {
    await io.out(helpOf(entry, io.program))
    return exitCode.success
  }
  if ('run' in entry) return entry.run(parseArguments(entry, args, io.program), io)
  const [name, ...rest] = args
  if (name === 'help') return runCommand(entry, [...rest, '--help'], io)
  if (name === undefined) {
    io.err(helpOf(entry, io.program))
    return exitCode.usage
  }
  const found = entry.commands.find(command => lastWord(command) === name)
  if (found) return runCommand(found, rest, io)
  const kind = name.startsWith('-') ? 'option' : 'command'
  throw new UsageError(unknown(kind, name, entry.commands.map(lastWord), typed(entry, io.program)))
}

function asksForHelp(args: readonly string[], entry: Command | CommandGroup): boolean {
  const end = 'run' in entry ? args.indexOf('--') : 1
  return args.slice(0, end === -1 ? undefined : end).some(arg => arg === '--help' || arg === '-h')
}

/** Throws a UsageError. Its message shows no value: it could be a secret. */
export function parseArguments(command: Command, args: readonly string[], program: string): Given {
  const { options = [] } = command
  const flags: Record<string, string> = {}
  const values: string[] = []
  const rest = [...args]
  for (let arg = rest.shift(); arg !== undefined && arg !== '--'; arg = rest.shift()) {
    // `-` is stdin or stdout, and `-1` is a number.
    if (!/^-\D/.test(arg)) {
      values.push(arg)
      continue
    }
    const [, name = arg, attached] = /^(--[^=]*)=(.*)$/s.exec(arg) ?? []
    const option = options.find(option => flagName(option) === name)
    if (!option) throw new UsageError(unknown('option', name, options.map(flagName), typed(command, program)))
    flags[name] = option.flag === name ? readSwitch(name, attached) : readValue(option, attached, rest)
  }
  values.push(...rest)
  checkValues(command, values, program)
  return { flags, values }
}

function readSwitch(name: string, attached: string | undefined): 'true' {
  if (attached !== undefined) throw new UsageError(`${name} takes no value: remove it`)
  return 'true'
}

/** The text after the equals sign, or the next argument, which it removes from `rest`. */
function readValue(option: Option, attached: string | undefined, rest: string[]): string {
  const value = attached ?? (rest[0]?.startsWith('--') ? undefined : rest.shift())
  if (value === undefined) throw new UsageError(`${flagName(option)} has no value: expected ${option.flag}`)
  return value
}

function checkValues(command: Command, values: readonly string[], program: string): void {
  const { arguments: expected = [] } = command
  for (const [index, { name, help, optional }] of expected.entries()) {
    // A shell passes an empty argument for a variable that is not set.
    if (values[index] === '') throw new UsageError(`<${name}> is empty: expected ${help}`)
    if (values[index] === undefined && !optional)
      throw new UsageError(missing(`<${name}>`, { expected: help }))
  }
  if (values.length > expected.length) {
    throw new UsageError(`Too many arguments: expected ${usageOf(command, program)}`)
  }
}

function unknown(kind: 'option' | 'command', name: string, known: readonly string[], typed: string): string {
  const [nearest] = known
    .map(candidate => ({ candidate, distance: editDistance(name, candidate) }))
    .filter(
      ({ candidate, distance }) => distance <= 3 && distance < candidate.replace(/^--/, '').length * 0.6,
    )
    .toSorted((a, b) => a.distance - b.distance)
  const advice = nearest ? `did you mean ${nearest.candidate}?` : `${typed} --help lists the ${kind}s`
  return `Unknown ${kind} ${name}: ${advice}`
}

/** How many characters to insert, delete or replace (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

function helpOf(entry: Command | CommandGroup, program: string): string {
  const help: Row = ['-h, --help', 'Show this help']
  const version: Row = ['-V, --version', 'Show the version']
  const sections = [`${entry.summary}.\n`, `Usage: ${usageOf(entry, program)}\n`]
  if ('run' in entry) {
    const { arguments: expected = [], options = [], details } = entry
    if (expected.length > 0)
      sections.push(
        list(
          'Arguments',
          expected.map(({ name, help }) => [`<${name}>`, help]),
        ),
      )
    sections.push(list('Options', [...options.map(optionRow), help]))
    if (details) sections.push(`${details}\n`)
  } else {
    sections.push(
      list(
        'Commands',
        entry.commands.map(command => [lastWord(command), command.summary]),
      ),
    )
    sections.push(list('Options', entry.name === '' ? [help, version] : [help]))
  }
  const examples = entry.examples.map(line => `  ${line.replaceAll('petstore ', `${program} `)}\n`)
  return [...sections, `Examples:\n${examples.join('')}`].join('\n')
}

function optionRow({ flag, help, default: fallback, variable }: Option): Row {
  const notes = [fallback && `(default: ${fallback})`, variable && `[${variable}]`]
  return [flag, [help, ...notes].filter(Boolean).join(' ')]
}

const helpColumns = 100

type Row = readonly [string, string]

/** A heading and two columns. The second one is wrapped. */
function list(heading: string, rows: readonly Row[]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  const wrap = new RegExp(`(?=.{${helpColumns - width - 3}})(.{1,${helpColumns - width - 4}}) `, 'g')
  const line = ([left, right]: Row) =>
    `  ${left.padEnd(width)}  ${right.replace(wrap, `$1\n${' '.repeat(width + 4)}`)}\n`
  return `${heading}:\n${rows.map(line).join('')}`
}

function usageOf(entry: Command | CommandGroup, program: string): string {
  if (!('run' in entry)) return `${typed(entry, program)} <command>`
  const expected = (entry.arguments ?? []).map(({ name, optional }) =>
    optional ? ` [${name}]` : ` <${name}>`,
  )
  return `${typed(entry, program)}${expected.join('')} [options]`
}

function typed({ name }: Command | CommandGroup, program: string): string {
  return `${program} ${name}`.trimEnd()
}

function lastWord({ name }: Command | CommandGroup): string {
  return name.slice(name.lastIndexOf(' ') + 1)
}
