import { type Field, invalid, missing } from '../field.ts'
import { exitCode, type Io, UsageError } from './output.ts'

/** An option of a command: a flag and, for some, an environment variable of lower precedence. */
export interface Option<T = unknown> extends Pick<Field<T>, 'expected'> {
  /** `--json` for a switch, `--host <address>`, or with a short form `--port, -p <number>`. */
  readonly flag: string
  readonly variable?: string
  readonly help: string
  /** The text to read if the option is not given. Without one, the option is required. */
  readonly default?: string
  /** The value is undefined if the option is not given; `default` then only describes what happens. */
  readonly optional?: true
  /** The value, or undefined if it is invalid. */
  read(text: string): T | undefined
  /** What is wrong with an invalid value, for a message that must not show it. */
  problem?(text: string): string
}

type Options = Readonly<Record<string, Option>>

export type Values<O extends Options> = {
  readonly [Name in keyof O]: O[Name] extends { optional: true }
    ? ReturnType<O[Name]['read']>
    : NonNullable<ReturnType<O[Name]['read']>>
}

type Rule<T> = Pick<Option<T>, 'help' | 'expected' | 'read' | 'problem'>

/** An option with an environment variable. */
export function setting<T>(variable: string, flag: string, fallback: string, rule: Rule<T>) {
  return { variable, flag, default: fallback, ...rule }
}

/** An option that is undefined unless it is given. `otherwise` describes what happens then. */
export function optional<T>(variable: string, flag: string, otherwise: string, rule: Rule<T>) {
  return { ...setting(variable, flag, otherwise, rule), optional: true } as const
}

export function integer(min: number, max: number) {
  const isInRange = (value: number) => value >= min && value <= max
  const read = (text: string) => (/^\d{1,9}$/.test(text) && isInRange(Number(text)) ? Number(text) : undefined)
  return { expected: `an integer from ${min} to ${max}`, read }
}

export function switchOption(flag: string, help: string) {
  const read = (text: string) => (text === 'true' ? true : text === 'false' ? false : undefined)
  return { flag, help, default: 'false', expected: 'true or false', read }
}

interface Argument {
  readonly name: string
  /** A valid value, in the words of a message: `a new file`. */
  readonly help: string
  readonly optional?: true
  /** Checks the value, with the options. */
  readonly field?: Pick<Option, 'expected' | 'read' | 'problem'>
}

export interface Command<O extends Options = Options> {
  /** As it is typed after the program: `keys create`. */
  readonly name: string
  readonly summary: string
  readonly arguments?: readonly Argument[]
  readonly options: O
  /** What else the help says. */
  readonly details?: string
  /** Lines to type, with `petstore` for the program. */
  readonly examples: readonly string[]
  /** Problems of options that contradict each other. A value is undefined if it is invalid. */
  check?(options: Partial<Values<O>>, isGiven: (name: keyof O & string) => boolean): readonly string[]
  /** Returns the exit code, if it is not 0. */
  run(options: Values<O>, args: readonly string[], io: Io): Promise<number | undefined>
}

/** Infers the types of the options. */
export const command = <const O extends Options>(command: Command<O>): Command => command

export interface CommandGroup {
  readonly name: string
  readonly summary: string
  readonly commands: readonly Entry[]
  readonly examples: readonly string[]
}

export type Entry = Command | CommandGroup

/** `--port` */
export const flagName = ({ flag }: Option) => flag.replace(/,? .*/, '')
/** `-p` */
const shortFlag = ({ flag }: Option) => /, (-\w)/.exec(flag)?.[1]
const isSwitch = ({ flag }: Option) => !flag.includes('<')
/** `petstore keys create` */
const typed = ({ name }: Entry, program: string) => `${program} ${name}`.trimEnd()
/** `create` */
const lastWord = ({ name }: Entry) => name.slice(name.lastIndexOf(' ') + 1)

/** Runs the command that `args` name, or prints the help. */
export async function runCommand(entry: Entry, args: readonly string[], io: Io): Promise<number> {
  if (asksForHelp(args, entry)) {
    await io.out(helpOf(entry, io.program))
    return exitCode.success
  }
  if ('run' in entry) {
    const { flags, values } = parseArguments(entry, args, io.program)
    return (await entry.run(readOptions(entry, flags, io.env, values), values, io)) ?? exitCode.success
  }
  const [name, ...rest] = args
  if (name === 'help') return runCommand(entry, [...rest, '--help'], io)
  if (name === undefined) {
    io.err(helpOf(entry, io.program))
    return exitCode.usage
  }
  const found = entry.commands.find(command => lastWord(command) === name)
  if (!found) throw unknown(name, entry, io.program)
  return runCommand(found, rest, io)
}

function asksForHelp(args: readonly string[], entry: Entry): boolean {
  const end = 'run' in entry ? args.indexOf('--') : 1
  return args.slice(0, end === -1 ? undefined : end).some(arg => arg === '--help' || arg === '-h')
}

/**
 * Flags are texts by name, such as `--port`; `true` for a switch.
 * Throws a UsageError, whose message shows no value: it could be a secret.
 */
export function parseArguments(command: Command, args: readonly string[], program: string) {
  const options = Object.values(command.options)
  const flags: Record<string, string> = {}
  const values: string[] = []
  const rest = [...args]
  for (let arg = rest.shift(); arg !== undefined && arg !== '--'; arg = rest.shift()) {
    // `-` is stdin or stdout, and `-1` is a number.
    if (!/^-\D/.test(arg)) {
      values.push(arg)
      continue
    }
    // `--port=9000`, `-p=9000` and `-p9000`
    const [, name = arg, attached] = /^(--[^=]*|-[^-])=(.*)$/s.exec(arg) ?? /^(-[^-])(.+)$/s.exec(arg) ?? []
    const option = options.find(option => flagName(option) === name || shortFlag(option) === name)
    if (!option) throw unknown(name, command, program)
    flags[flagName(option)] = textOf(option, attached, rest)
  }
  values.push(...rest)
  checkValues(command, values, program)
  return { flags, values }
}

/** `true` for a switch; otherwise the text after the equals sign, or the next argument, removed from `rest`. */
function textOf(option: Option, attached: string | undefined, rest: string[]): string {
  const name = flagName(option)
  if (isSwitch(option)) {
    if (attached !== undefined) throw new UsageError(`${name} takes no value: remove it`)
    return 'true'
  }
  const value = attached ?? (rest[0]?.startsWith('--') ? undefined : rest.shift())
  if (value === undefined) throw new UsageError(`${name} has no value: expected ${option.flag}`)
  return value
}

function checkValues(command: Command, values: readonly string[], program: string): void {
  const { arguments: expected = [] } = command
  for (const [index, { name, help, optional }] of expected.entries()) {
    // A shell passes an empty argument for a variable that is not set.
    if (values[index] === '') throw new UsageError(`<${name}> is empty: expected ${help}`)
    if (values[index] === undefined && !optional) throw new UsageError(missing(`<${name}>`, { expected: help }))
  }
  if (values.length > expected.length) throw new UsageError(`Too many arguments: expected ${usageOf(command, program)}`)
}

/** Reads arguments, flags, variables and defaults. Throws a UsageError with all problems. Ignores empty variables. */
export function readOptions<O extends Options>(
  command: Pick<Command<O>, 'arguments' | 'options' | 'check'>,
  flags: Readonly<Record<string, string | undefined>>,
  env: Io['env'],
  args: readonly string[] = [],
): Values<O> {
  const { arguments: expected = [], options, check } = command
  const problems = args.flatMap((text, index) => {
    const { name, field } = expected[index] ?? {}
    return field && field.read(text) === undefined ? [invalid(`<${name}>`, text, field)] : []
  })
  const given = new Set<string>()
  const read = ([name, option]: [string, Option]) => {
    const { variable = '', default: fallback } = option
    const flag = flagName(option)
    const [label, text] = flags[flag] === undefined ? [variable, env[variable] || undefined] : [flag, flags[flag]]
    if (text === undefined) {
      if (fallback === undefined) problems.push(missing(variable || flag, option))
      return [name, option.optional ? undefined : option.read(fallback ?? '')]
    }
    given.add(name)
    const value = option.read(text)
    // A URL that was meant for another option is shown without user and password.
    const shown = option.problem ? text : text.replace(/\/\/.*@/s, '//…@')
    if (value === undefined) problems.push(invalid(label, shown, option))
    return [name, value]
  }
  const values: Values<O> = Object.fromEntries(Object.entries<Option>(options).map(read))
  problems.push(...(check?.(values, name => given.has(name)) ?? []))
  if (problems.length > 0) throw new UsageError(...problems)
  return values
}

function unknown(name: string, entry: Entry, program: string): UsageError {
  const kind = name.startsWith('-') ? 'option' : 'command'
  const known = 'run' in entry ? Object.values(entry.options).map(flagName) : entry.commands.map(lastWord)
  const advice = suggestion(name, known) ?? `${typed(entry, program)} --help lists the ${kind}s`
  // It may hold a key or a password.
  const shown = name
    .replace(/\/\/.*@/s, '//…@')
    .replace(/=.*/s, '')
    .replace(/^(-[^-]).*/s, '$1')
  return new UsageError(`Unknown ${kind} ${shown}: ${advice}`)
}

/** `did you mean --port?`, if a known name is similar. */
export function suggestion(name: string, known: readonly string[]): string | undefined {
  const [nearest] = known
    .map(candidate => ({ candidate, distance: editDistance(name, candidate) }))
    .filter(({ candidate, distance }) => distance <= Math.min(3, candidate.length / 2))
    .toSorted((a, b) => a.distance - b.distance)
  return nearest && `did you mean ${nearest.candidate}?`
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

const helpOption = switchOption('--help, -h', 'Show this help')
const versionOption = switchOption('--version, -v', 'Show the version')

function helpOf(entry: Entry, program: string): string {
  const all: Partial<Command & CommandGroup> = entry
  const { commands = [], arguments: values = [], options = entry.name === '' ? { versionOption } : {}, details } = all
  const sections = [
    `${entry.summary}.\n`,
    `Usage: ${usageOf(entry, program)}\n`,
    list('Commands', commands.map(commandRow)),
    list('Arguments', values.map(argumentRow)),
    list('Options', [...Object.values(options), helpOption].map(optionRow)),
    details ? `${details}\n` : '',
    `Examples:\n${entry.examples.map(line => `  ${line.replaceAll('petstore ', `${program} `)}\n`).join('')}`,
  ]
  return sections.filter(section => section !== '').join('\n')
}

type Row = readonly [string, string]

const commandRow = (entry: Entry): Row => [lastWord(entry), entry.summary]
const argumentRow = ({ name, help }: { name: string; help: string }): Row => [`<${name}>`, help]

function optionRow(option: Option): Row {
  const { flag, help, default: fallback, variable } = option
  const otherwise = isSwitch(option) ? '' : fallback === undefined ? ' (required)' : ` (default: ${fallback})`
  return [flag, `${help}${otherwise}${variable ? ` [${variable}]` : ''}`]
}

const helpColumns = 100

/** A heading and two columns; the second wraps. Empty if there are no rows. */
function list(heading: string, rows: readonly Row[]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  const wrap = new RegExp(`(?=.{${helpColumns - width - 3}})(.{1,${helpColumns - width - 4}}) `, 'g')
  const line = ([left, right]: Row) =>
    `  ${left.padEnd(width)}  ${right.replace(wrap, `$1\n${' '.repeat(width + 4)}`)}\n`
  return rows.length > 0 ? `${heading}:\n${rows.map(line).join('')}` : ''
}

function usageOf(entry: Entry, program: string): string {
  if (!('run' in entry)) return `${typed(entry, program)} <command>`
  const expected = (entry.arguments ?? []).map(({ name, optional }) => (optional ? ` [${name}]` : ` <${name}>`))
  return `${typed(entry, program)}${expected.join('')} [options]`
}
