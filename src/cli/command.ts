// What a command declares, and its help.

import { int64, type Rule } from '../field.ts'
import { InexactNumber } from '../int64.ts'
import type { Io } from './output.ts'

/** A flag of a command, for some with an environment variable of lower precedence; or an argument. */
export interface Option<T = unknown> extends Rule<T, string> {
  /** `port` for `--port`, or `file` for the argument `<file>`. */
  readonly name: string
  readonly short?: string
  /** Another name of the flag. */
  readonly alias?: string
  /** What the help calls the value. Absent for a switch. */
  readonly value?: string
  /** Whether it is an argument. Only the last one of a command may take several texts. */
  readonly argument?: 'one' | 'several'
  readonly variable?: string
  readonly help: string
  /** The text to read if the option is not given. */
  readonly default?: string
  /** What happens if the option is not given: its value is undefined. Without this and a default, it is required. */
  readonly otherwise?: string
  /** How to get a value for a required option. */
  readonly advice?: (program: string) => string
}

type Options = Readonly<Record<string, Option>>

type Value<O extends Option> = NonNullable<ReturnType<O['read']>>

export type Values<O extends Options> = {
  readonly [Key in keyof O]: O[Key] extends { otherwise: string }
    ? Value<O[Key]> | undefined
    : O[Key] extends { argument: 'several' }
      ? readonly Value<O[Key]>[]
      : Value<O[Key]>
}

type Rest<T> = Rule<T, string> & Pick<Option<T>, 'help' | 'short' | 'value'>

export function setting<T>(name: string, variable: string, fallback: string, rest: Rest<T>) {
  return { name, variable, default: fallback, ...rest }
}

/** An option that is undefined unless it is given. */
export function optional<T>(name: string, variable: string, otherwise: string, rest: Rest<T>) {
  return { name, variable, otherwise, ...rest }
}

export function integer(min: number, max: number) {
  const isInRange = (value: number) => value >= min && value <= max
  const read = (text: string) => (/^\d{1,9}$/.test(text) && isInRange(Number(text)) ? Number(text) : undefined)
  return { value: 'number', expected: `an integer from ${min} to ${max}`, read }
}

/** As JSON writes it, so `1e3` is valid. */
export const int64Text = {
  value: 'number',
  expected: int64.expected,
  read: (text: string) => int64.read(new InexactNumber(text)),
  problem: (text: string) => int64.problem?.(new InexactNumber(text)),
}

export function switchOption(name: string, help: string, short?: string) {
  const read = (text: string) => (text === 'true' ? true : text === 'false' ? false : undefined)
  return { name, help, ...(short && { short }), default: 'false', expected: 'true or false', read }
}

/** Any text. `help` describes it in messages, too: `a new file`. */
export function argument(name: string, help: string) {
  // A shell passes an empty argument for a variable that is not set.
  const problem = () => `is empty: expected ${help}`
  return { name, help, argument: 'one', expected: help, read: (text: string) => text || undefined, problem } as const
}

export interface Command<O extends Options = Options> {
  /** As it is typed after the program: `keys create`. */
  readonly name: string
  readonly summary: string
  readonly options: O
  readonly details?: string
  /** Lines to type, with `petstore` for the program. */
  readonly examples: readonly string[]
  /** Problems of options that contradict each other. A value is undefined if it is invalid. */
  check?(values: Partial<Values<O>>, isGiven: (key: keyof O & string) => boolean, program: string): readonly string[]
  /** Returns the exit code, if it is not 0. */
  run(options: Values<O>, io: Io): Promise<number | undefined>
}

export const command = <const O extends Options>(command: Command<O>): Command => command

export interface CommandGroup extends Pick<Command, 'name' | 'summary' | 'examples'> {
  readonly commands: readonly Entry[]
}

export type Entry = Command | CommandGroup

/** The last word of the name: `create`. */
export const lastWord = ({ name }: Entry) => name.slice(name.lastIndexOf(' ') + 1)
export const isSwitch = ({ argument, value }: Option) => !argument && value === undefined
export const isRequired = (option: Option) => option.default === undefined && option.otherwise === undefined
export const listArguments = ({ options }: Command) => Object.values(options).filter(({ argument }) => argument)
export const listFlags = ({ options }: Command) => Object.values(options).filter(({ argument }) => !argument)
export const flagNames = ({ name, alias }: Option) => (alias ? [`--${name}`, `--${alias}`] : [`--${name}`])

/** `--port`, `<file>` or `<id>...` */
export function label({ name, argument }: Option): string {
  if (!argument) return `--${name}`
  return argument === 'several' ? `<${name}>...` : `<${name}>`
}

/** `--port, -p <number>`, or the argument. */
export function syntax(option: Option): string {
  const { argument, short, value } = option
  if (argument) return label(option)
  const names = [...flagNames(option), ...(short ? [`-${short}`] : [])].join(', ')
  return value ? `${names} <${value}>` : names
}

export function formatUsage(entry: Entry, program: string): string {
  const start = `${program} ${entry.name}`.trimEnd()
  if (!('run' in entry)) return `${start} <command>`
  const expected = listArguments(entry).map(option => (isRequired(option) ? label(option) : `[${option.name}]`))
  const flags = listFlags(entry).filter(option => isRequired(option) && !option.variable)
  const required = flags.map(option => `${label(option)} <${option.value}>`)
  return [start, ...expected, ...required, '[options]'].join(' ')
}

export function formatHelp(entry: Entry, program: string): string {
  const isCommand = 'run' in entry
  const commands = isCommand ? [] : entry.commands.map((command): Row => [lastWord(command), command.summary])
  const args = isCommand ? listArguments(entry) : []
  const flags = isCommand ? listFlags(entry) : entry.name === '' ? [versionOption] : []
  const sections = [
    `${entry.summary}.\n`,
    `Usage: ${formatUsage(entry, program)}\n`,
    list('Commands', commands),
    list('Arguments', args.map(optionRow)),
    list('Options', [...flags, helpOption].map(optionRow)),
    isCommand && entry.details ? `${entry.details}\n` : '',
    `Examples:\n${entry.examples.map(line => `  ${line.replaceAll('petstore ', () => `${program} `)}\n`).join('')}`,
  ]
  return sections.filter(section => section !== '').join('\n')
}

const helpOption = switchOption('help', 'Show this help', 'h')
const versionOption = switchOption('version', 'Show the version', 'v')

type Row = readonly [string, string]

function optionRow(option: Option): Row {
  const { argument, help, variable, default: fallback, otherwise = fallback } = option
  const texts = [help]
  if (!argument && isRequired(option)) texts.push('(required)')
  else if (otherwise !== undefined && !isSwitch(option)) texts.push(`(default: ${otherwise})`)
  if (variable) texts.push(`[${variable}]`)
  return [syntax(option), texts.join(' ')]
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
