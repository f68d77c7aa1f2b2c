import { parseArgs } from 'node:util'
import { type Field, invalid, missing } from '../field.ts'
import type { Io } from './output.ts'

/** An option of a command: a flag and, for some, an environment variable of lower precedence. */
export interface Option<T = unknown> extends Pick<Field<T>, 'expected'> {
  /** `--json` for a switch, `--host <address>`, or with a short form `--port, -p <number>`. */
  readonly flag: string
  readonly variable?: string
  /** Empty for an option that the help does not list. */
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

export interface CommandGroup extends Pick<Command, 'name' | 'summary' | 'examples'> {
  readonly commands: readonly Entry[]
}

export type Entry = Command | CommandGroup

/** `--port` */
export const flagName = ({ flag }: Option) => flag.replace(/,? .*/, '')
const isSwitch = ({ flag }: Option) => !flag.includes('<')
/** `petstore keys create` */
const typed = ({ name }: Entry, program: string) => `${program} ${name}`.trimEnd()
/** `create` */
export const lastWord = ({ name }: Entry) => name.slice(name.lastIndexOf(' ') + 1)

/** The options' values and the other arguments, complete if there are no problems. */
export function readCommand(command: Command, given: readonly string[], { env, program }: Pick<Io, 'env' | 'program'>) {
  const { flags, args, problems } = splitArguments(command, given, program)
  const read = readValues(command, flags, env, args)
  return { ...read, args, problems: problems.length > 0 ? problems : read.problems }
}

/**
 * Flags are texts by name, such as `--port`; `true` for a switch. Reports one problem, because others may follow from it;
 * it shows no value, which could be a secret.
 */
export function splitArguments(command: Command, given: readonly string[], program: string) {
  const options = Object.values(command.options)
  const flags: Record<string, string> = {}
  const args: string[] = []
  const problems: string[] = []
  for (const token of tokensOf(given, options)) {
    const [arg = '', next = '--'] = given.slice(token.index)
    if (token.kind === 'positional') args.push(arg)
    if (token.kind !== 'option') continue
    const option = options.find(({ flag }) => flag.split(/,? /).includes(token.rawName))
    // `=9000` or `9000`
    const attached = arg.slice(token.rawName.length)
    if (!option) problems.push(unknownName(token.rawName, command, program))
    else if (isSwitch(option) && attached) problems.push(`${flagName(option)} takes no value: remove it`)
    else if (isSwitch(option)) flags[flagName(option)] = 'true'
    else if (attached) flags[flagName(option)] = attached.replace(/^=/, '')
    else if (next.startsWith('--')) problems.push(`${flagName(option)} has no value: expected ${option.flag}`)
    else flags[flagName(option)] = next
  }
  problems.push(...argumentProblems(command, args, program))
  return { flags, args, problems: problems.slice(0, 1) }
}

function tokensOf(args: readonly string[], options: readonly Option[]) {
  const config = options.map(option => {
    const short = /, -(\w)/.exec(option.flag)?.[1]
    return [
      flagName(option).slice(2),
      { type: isSwitch(option) ? 'boolean' : 'string', ...(short && { short }) },
    ] as const
  })
  // parseArgs would take -1 for a flag. Tokens have the index of the original text.
  const texts = args.map(arg => arg.replace(/^-(?=\d)/, ''))
  return parseArgs({ args: texts, options: Object.fromEntries(config), strict: false, tokens: true }).tokens
}

function argumentProblems(command: Command, args: readonly string[], program: string): readonly string[] {
  const { arguments: expected = [] } = command
  const problems = expected.flatMap(({ name, help, optional }, index) => {
    // A shell passes an empty argument for a variable that is not set.
    if (args[index] === '') return `<${name}> is empty: expected ${help}`
    return args[index] === undefined && !optional ? missing(`<${name}>`, { expected: help }) : []
  })
  return args.length > expected.length
    ? [...problems, `Too many arguments: expected ${usageOf(command, program)}`]
    : problems
}

/** Reads flags, variables and defaults, and checks arguments. Ignores empty variables. An invalid value is undefined. */
export function readValues<O extends Options>(
  { arguments: expected = [], options, check }: Pick<Command<O>, 'arguments' | 'options' | 'check'>,
  flags: Readonly<Record<string, string>>,
  env: Io['env'],
  args: readonly string[] = [],
): { readonly values: Values<O>; readonly problems: readonly string[] } {
  const problems = args.flatMap((text, index) => {
    const { name, field } = expected[index] ?? {}
    return field && field.read(text) === undefined ? invalid(`<${name}>`, text, field) : []
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
    // A URL that was meant for another option may contain a password.
    if (value === undefined) problems.push(invalid(label, option.problem ? text : withoutUser(text), option))
    return [name, value]
  }
  const values: Values<O> = Object.fromEntries(Object.entries<Option>(options).map(read))
  problems.push(...(check?.(values, name => given.has(name)) ?? []))
  return { values, problems }
}

const withoutUser = (url: string) => url.replace(/\/\/.*@/s, '//…@')

/** The problem of an option or a command that does not exist. */
export function unknownName(name: string, entry: Entry, program: string): string {
  const kind = name.startsWith('-') ? 'option' : 'command'
  const known = 'run' in entry ? Object.values(entry.options).map(flagName) : entry.commands.map(lastWord)
  const advice = suggestion(name, known) ?? `${typed(entry, program)} --help lists the ${kind}s`
  // A value behind the name may be a key or a password.
  return `Unknown ${kind} ${withoutUser(name).replace(/=.*|(?<=^-[^-]).*/s, '')}: ${advice}`
}

/** `did you mean --port?`, if a known name is similar. */
export function suggestion(name: string, known: readonly string[]): string | undefined {
  const near = (edits: number) => known.find(other => edits <= other.length / 2 && isWithin(edits, name, other))
  const nearest = near(1) ?? near(2) ?? near(3)
  return nearest && `did you mean ${nearest}?`
}

/** Whether inserting, deleting or replacing at most this many characters turns `a` into `b`. */
function isWithin(edits: number, a: string, b: string): boolean {
  if (a === '' || b === '') return a.length + b.length <= edits
  const [restOfA, restOfB] = [a.slice(1), b.slice(1)]
  if (a[0] === b[0]) return isWithin(edits, restOfA, restOfB)
  const isLess = (a: string, b: string) => isWithin(edits - 1, a, b)
  return edits > 0 && (isLess(restOfA, b) || isLess(a, restOfB) || isLess(restOfA, restOfB))
}

export function helpOf(entry: Entry, program: string): string {
  const { commands = [], arguments: args = [], options = {}, details }: Partial<Command & CommandGroup> = entry
  const commandRows = commands.map((command): Row => [lastWord(command), command.summary])
  const argumentRows = args.map(({ name, help }): Row => [`<${name}>`, help])
  const optionRows = Object.values(options)
    .filter(({ help }) => help !== '')
    .map(optionRow)
  if (entry.name === '') optionRows.push(['--version, -v', 'Show the version'])
  const sections = [
    `${entry.summary}.\n`,
    `Usage: ${usageOf(entry, program)}\n`,
    list('Commands', commandRows),
    list('Arguments', argumentRows),
    list('Options', [...optionRows, ['--help, -h', 'Show this help']]),
    details ? `${details}\n` : '',
    `Examples:\n${entry.examples.map(line => `  ${line.replaceAll('petstore ', `${program} `)}\n`).join('')}`,
  ]
  return sections.filter(section => section !== '').join('\n')
}

type Row = readonly [string, string]

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
