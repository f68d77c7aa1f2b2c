import { parseArgs } from 'node:util'
import { int64, invalid, missing, type Rule, show } from '../field.ts'
import { InexactNumber } from '../int64.ts'
import { type Io, shellWord } from './output.ts'

/** An option of a command: a flag and, for some, an environment variable of lower precedence; or an argument. */
export interface Option<T = unknown> extends Rule<T, string> {
  /** `--json` for a switch, `--host <address>`, with another name `--port, -p <number>`; `<file>` for an argument. */
  readonly flag: string
  readonly variable?: string
  readonly help: string
  /** The text to read if the option is not given. Without one, the option is required. */
  readonly default?: string
  /** The value is undefined if the option is not given; `default` then only describes what happens. */
  readonly optional?: true
}

type Options = Readonly<Record<string, Option>>

export type Values<O extends Options> = {
  readonly [Name in keyof O]: O[Name] extends { optional: true }
    ? ReturnType<O[Name]['read']>
    : NonNullable<ReturnType<O[Name]['read']>>
}

type HelpedRule<T> = Rule<T, string> & Pick<Option<T>, 'help'>

export function setting<T>(variable: string, flag: string, fallback: string, rule: HelpedRule<T>) {
  return { variable, flag, default: fallback, ...rule }
}

/** An option that is undefined unless it is given. `otherwise` describes what happens then. */
export function optional<T>(variable: string, flag: string, otherwise: string, rule: HelpedRule<T>) {
  return { ...setting(variable, flag, otherwise, rule), optional: true } as const
}

export function integer(min: number, max: number) {
  const isInRange = (value: number) => value >= min && value <= max
  const read = (text: string) => (/^\d{1,9}$/.test(text) && isInRange(Number(text)) ? Number(text) : undefined)
  return { expected: `an integer from ${min} to ${max}`, read }
}

/** As JSON writes it, so `1e3` is valid. */
export const int64Text: Rule<bigint, string> = {
  expected: int64.expected,
  read: text => int64.read(new InexactNumber(text)),
  problem: text => int64.problem?.(new InexactNumber(text)),
}

export function switchOption(flag: string, help: string) {
  const read = (text: string) => (text === 'true' ? true : text === 'false' ? false : undefined)
  return { flag, help, default: 'false', expected: 'true or false', read }
}

/** Any text without a flag. `help` describes it in messages, too: `a new file`. */
export function argument(flag: string, help: string) {
  return { flag, help, expected: help, read: (text: string) => text }
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
  check?(options: Partial<Values<O>>, isGiven: (name: keyof O & string) => boolean): readonly string[]
  /** Returns the exit code, if it is not 0. */
  run(options: Values<O>, io: Io): Promise<number | undefined>
}

export const command = <const O extends Options>(command: Command<O>): Command => command

export interface CommandGroup extends Pick<Command, 'name' | 'summary' | 'examples'> {
  readonly commands: readonly Entry[]
  /** What to do instead, for commands that people look for. */
  readonly insteadOf?: ReadonlyMap<string, string>
}

export type Entry = Command | CommandGroup

/** `--port` */
export const flagName = ({ flag }: Option) => flag.replace(/,? .*/, '')
const isRequired = (option: Option) => option.default === undefined && !option.variable
const isSwitch = ({ flag }: Option) => !flag.includes('<')
const listArguments = ({ options }: Command) => Object.values(options).filter(({ flag }) => flag.startsWith('<'))
const listFlags = ({ options }: Command) => Object.values(options).filter(({ flag }) => flag.startsWith('-'))
/** `petstore keys create` */
const fullName = ({ name }: Entry, program: string) => `${program} ${name}`.trimEnd()
/** `create` */
export const lastWord = ({ name }: Entry) => name.slice(name.lastIndexOf(' ') + 1)

/** The values of flags, arguments and variables, complete if there are no problems. */
export function readCommand(command: Command, args: readonly string[], { env, program }: Pick<Io, 'env' | 'program'>) {
  const { texts, problems } = splitArguments(command, args, program)
  return problems.length > 0 ? { values: {}, problems } : readValues(command, texts, env)
}

/**
 * The texts by name, such as `--port` or `<file>`; `true` for a switch. Reports one problem, because others may follow
 * from it; it shows no text that could be a secret.
 */
export function splitArguments(command: Command, args: readonly string[], program: string) {
  const flags = listFlags(command)
  const expected = listArguments(command)
  const texts: Record<string, string> = {}
  const others: string[] = []
  const problems: string[] = []
  for (const token of tokenize(args, flags)) {
    const [arg = '', next = '--'] = args.slice(token.index)
    if (token.kind === 'positional') others.push(arg)
    if (token.kind !== 'option') continue
    const option = flags.find(({ flag }) => flag.split(/,? /).includes(token.rawName))
    // `=9000` or `9000`
    const attached = arg.slice(token.rawName.length)
    if (!option) problems.push(describeUnknown(token.rawName, command, program))
    else if (isSwitch(option) && attached) problems.push(`${flagName(option)} takes no value: remove it`)
    else if (isSwitch(option)) texts[flagName(option)] = 'true'
    else if (attached) texts[flagName(option)] = attached.replace(/^=/, '')
    else if (next.startsWith('--')) problems.push(`${flagName(option)} has no value: expected ${option.flag}`)
    else texts[flagName(option)] = next
  }
  for (const [index, { flag, help, optional }] of expected.entries()) {
    // The last argument of a command may take all that follow, separated by spaces: `<id>...`.
    const text = flag.endsWith('...') ? others.splice(index).join(' ') || undefined : others[index]
    if (text !== undefined) texts[flag] = text
    else if (!optional) problems.push(missing(flag, { expected: help }))
    // A shell passes an empty argument for a variable that is not set.
    if (text === '') problems.push(`${flag} is empty: expected ${help}`)
  }
  const extra = others[expected.length]
  if (extra !== undefined) {
    const flag = mayBeSecret(extra) ? undefined : flagFor(extra, flags, texts)
    const advice = flag ? `did you mean ${flag} ${shellWord(extra)}?` : `expected ${formatUsage(command, program)}`
    problems.push(`${describeExtra(extra)}: ${advice}`)
  }
  return { texts, problems: problems.slice(0, 1) }
}

/** The required flag that is not given and accepts this text: `keys create till` lacks only `--name`. */
function flagFor(text: string, flags: readonly Option[], texts: Readonly<Record<string, string>>): string | undefined {
  const missing = flags.filter(option => isRequired(option) && texts[flagName(option)] === undefined)
  return missing.filter(option => option.read(text) !== undefined).map(flagName)[0]
}

function tokenize(args: readonly string[], flags: readonly Option[]) {
  const options: Record<string, { type: 'boolean' | 'string'; short?: string }> = {}
  for (const option of flags) {
    const type = isSwitch(option) ? 'boolean' : 'string'
    const short = /, -(\w)/.exec(option.flag)?.[1]
    for (const [name] of option.flag.matchAll(/(?<=--)[\w-]+/g)) options[name] = { type, ...(short && { short }) }
  }
  // parseArgs would take -1 for a flag. Tokens have the index of the original text.
  const texts = args.map(arg => arg.replace(/^-(?=\d)/, ''))
  return parseArgs({ args: texts, options, strict: false, tokens: true }).tokens
}

/** Reads texts, variables and defaults. Ignores empty variables. An invalid value is undefined. */
export function readValues<O extends Options>(
  { options, check }: Pick<Command<O>, 'options' | 'check'>,
  texts: Readonly<Record<string, string>>,
  env: Io['env'],
): { readonly values: Values<O>; readonly problems: readonly string[] } {
  const problems: string[] = []
  const given = new Set<string>()
  const read = ([name, option]: [string, Option]) => {
    const { variable = '', default: fallback } = option
    const flag = flagName(option)
    const [label, text] = texts[flag] === undefined ? [variable, env[variable] || undefined] : [flag, texts[flag]]
    if (text === undefined) {
      if (fallback === undefined) problems.push(missing(variable ? `${flag} (${variable})` : flag, option))
      return [name, option.optional ? undefined : option.read(fallback ?? '')]
    }
    given.add(name)
    const value = option.read(text)
    // A URL that was meant for another option may contain a password.
    const rule = { ...option, problem: () => option.problem?.(text) }
    if (value === undefined) problems.push(invalid(label, withoutUser(text), rule))
    return [name, value]
  }
  const values: Values<O> = Object.fromEntries(Object.entries<Option>(options).map(read))
  problems.push(...(check?.(values, name => given.has(name)) ?? []))
  return { values, problems }
}

export const withoutUser = (url: string) => url.replace(/\/\/.*@/s, '//…@')
/** A key has at least 16 characters, and a password follows a colon or `password=`. */
const mayBeSecret = (text: string) => /[^.\s]{16}|pets_|[=?]|:(?!\/\/)/.test(text)
const describeExtra = (text: string) =>
  mayBeSecret(withoutUser(text)) ? 'Too many arguments' : `Unexpected argument ${show(withoutUser(text))}`

export function describeUnknown(name: string, entry: Entry, program: string): string {
  const kind = name.startsWith('-') ? 'option' : 'command'
  const isCommand = 'run' in entry
  const known = isCommand
    ? listFlags(entry).flatMap(({ flag }) => flag.match(/--[\w-]+/g) ?? [])
    : entry.commands.map(lastWord)
  const isEarly = !isCommand && kind === 'option'
  const lists = `${fullName(entry, program)} --help lists the ${isCommand ? 'options' : 'commands'}`
  const mayBeArgument = /^-[^-]/.test(name) && isCommand && listArguments(entry).length > 0
  const dashed = mayBeArgument
    ? `; for an argument that begins with a dash, type ${formatUsage(entry, program, true)}`
    : ''
  const near = findSimilar(name, known)
  const guess = near ? `did you mean ${near}?` : `${lists}${dashed}`
  const instead = isCommand ? undefined : entry.insteadOf?.get(name)
  const advice = isEarly ? `name a command first; ${lists}` : (instead ?? guess)
  // A value behind the name may be a key or a password.
  return `Unknown ${kind} ${withoutUser(name).replace(/=.*|(?<=^-[^-]).*/s, '')}: ${advice}`
}

/** A known name with the same letters, or whose words each differ by at most a quarter: wrong guesses are worse than none. */
export function findSimilar(name: string, known: readonly string[]): string | undefined {
  const words = (text: string) => text.split(/[-_]+/)
  const letters = (text: string) => [...words(text).join('')].sort().join('')
  const isSimilar = (word: string, other = '') => isWithin(Math.floor(other.length / 4), word, other)
  return known.find(other => {
    const [given, expected] = [words(name), words(other)]
    const areSimilar =
      given.length === expected.length && given.every((word, index) => isSimilar(word, expected[index]))
    return areSimilar || letters(name) === letters(other)
  })
}

/** Whether inserting, deleting or replacing at most this many characters turns `a` into `b`. */
function isWithin(edits: number, a: string, b: string): boolean {
  if (a === '') return b.length <= edits
  const [restOfA, restOfB] = [a.slice(1), b.slice(1)]
  if (a[0] === b[0]) return isWithin(edits, restOfA, restOfB)
  const isLess = (a: string, b: string) => isWithin(edits - 1, a, b)
  return edits > 0 && (isLess(restOfA, b) || isLess(a, restOfB) || isLess(restOfA, restOfB))
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

const helpOption = switchOption('--help, -h', 'Show this help')
const versionOption = switchOption('--version, -v', 'Show the version')

type Row = readonly [string, string]

function optionRow(option: Option): Row {
  const { flag, help, default: fallback, variable } = option
  const required = flag.startsWith('-') ? ' (required)' : ''
  const otherwise = isSwitch(option) ? '' : fallback === undefined ? required : ` (default: ${fallback})`
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

/** With `dashed`, the form in which an argument may begin with a dash. */
function formatUsage(entry: Entry, program: string, dashed = false): string {
  if (!('run' in entry)) return `${fullName(entry, program)} <command>`
  const expected = listArguments(entry).map(({ flag, optional }) => (optional ? ` [${flag.slice(1, -1)}]` : ` ${flag}`))
  const flags = listFlags(entry).filter(isRequired)
  const required = flags.map(option => ` ${flagName(option)} ${option.flag.replace(/^[^<]*/, '')}`)
  const parts = dashed ? [...required, ' [options] --', ...expected] : [...expected, ...required, ' [options]']
  return `${fullName(entry, program)}${parts.join('')}`
}
