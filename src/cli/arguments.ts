// Reads the arguments and variables of a command.

import { parseArgs } from 'node:util'
import { invalid, missing, show } from '../field.ts'
import {
  type Command,
  flagNames,
  formatUsage,
  isRequired,
  isSwitch,
  label,
  listArguments,
  listFlags,
  type Option,
  syntax,
  type Values,
} from './command.ts'
import { type Io, shellWord } from './output.ts'
import { findSimilar } from './similar.ts'

type Texts = Readonly<Record<string, readonly string[]>>
type Surroundings = Pick<Io, 'env' | 'program'>

/** The values of flags, arguments and variables, complete if there are no problems. */
export function readCommand(command: Command, args: readonly string[], surroundings: Surroundings) {
  const { texts, problems } = splitArguments(command, args, surroundings.program)
  // A flag that is not understood may be a mistyped one, so nothing is known to be missing.
  const read = readValues(command, texts, surroundings, problems.length === 0)
  return { values: read.values, problems: [...problems, ...read.problems] }
}

/** The texts of flags and arguments, by their keys in the command. Problems show no text that could be a secret. */
function splitArguments(command: Command, args: readonly string[], program: string) {
  const options = Object.entries(command.options)
  const texts: Record<string, readonly string[]> = {}
  const others: string[] = []
  const problems: string[] = []
  let lastIndex = -1
  for (const token of tokenize(args, listFlags(command))) {
    // At the end, as before another flag: there is no value.
    const [arg = '', next = '--'] = args.slice(token.index)
    if (token.kind === 'positional') others.push(arg)
    // `-qsecret` is several tokens.
    if (token.kind !== 'option' || token.index === lastIndex) continue
    lastIndex = token.index
    const isMeant = ({ argument, name, alias }: Option) => !argument && [name, alias].includes(token.name)
    const [key = '', option] = options.find(([, option]) => isMeant(option)) ?? []
    // `=9000` or `9000`
    const attached = arg.slice(token.rawName.length)
    if (!option) problems.push(describeUnknown(token.rawName, command, program))
    else if (isSwitch(option) && attached) problems.push(`${label(option)} takes no value: remove it`)
    else if (isSwitch(option)) texts[key] = ['true']
    else if (attached) texts[key] = [attached.replace(/^=/, '')]
    else if (next.startsWith('--')) problems.push(`${label(option)} has no value: expected ${syntax(option)}`)
    else texts[key] = [next]
  }
  // An argument may be the value of a flag that is not understood.
  if (problems.length > 0) return { texts, problems }
  for (const [key, { argument }] of options.filter(([, { argument }]) => argument)) {
    const taken = others.splice(0, argument === 'several' ? others.length : 1)
    if (taken.length > 0) texts[key] = taken
  }
  const [extra] = others
  if (extra !== undefined) problems.push(describeExtra(extra, command, texts, program))
  return { texts, problems }
}

function tokenize(args: readonly string[], flags: readonly Option[]) {
  const options: Record<string, { type: 'boolean' | 'string'; short?: string }> = {}
  for (const option of flags) {
    const { name, alias = name, short } = option
    const type = isSwitch(option) ? 'boolean' : 'string'
    options[alias] = { type }
    options[name] = short ? { type, short } : { type }
  }
  // parseArgs would take -1 for a flag. Tokens have the index of the original text.
  const texts = args.map(arg => arg.replace(/^-(?=\d)/, ''))
  return parseArgs({ args: texts, options, strict: false, tokens: true }).tokens
}

/** Ignores empty variables. An invalid value is undefined. Only `isComplete` reports missing options and contradictions. */
export function readValues<O extends Command['options']>(
  { options, check }: Pick<Command<O>, 'options' | 'check'>,
  texts: Texts,
  { env, program }: Surroundings,
  isComplete = true,
): { readonly values: Values<O>; readonly problems: readonly string[] } {
  const problems: string[] = []
  const given = new Set<string>()
  const read = ([key, option]: [string, Option]) => {
    const { argument, variable = '', otherwise, default: fallback } = option
    const [name, found] = texts[key] ? [label(option), texts[key]] : [variable, env[variable] && [env[variable]]]
    if (!found) {
      if (isRequired(option) && isComplete) problems.push(describeMissing(option, program))
      return [key, otherwise === undefined ? option.read(fallback ?? '') : undefined]
    }
    given.add(key)
    const values = found.map(text => option.read(text))
    const wrong = found.filter((_, index) => values[index] === undefined)
    // A URL that was meant for another option may contain a password.
    problems.push(...wrong.map(text => invalid(name, withoutUser(text), option)))
    if (wrong.length > 0) return [key, undefined]
    return [key, argument === 'several' ? values : values[0]]
  }
  const values: Values<O> = Object.fromEntries(Object.entries<Option>(options).map(read))
  if (isComplete) problems.push(...(check?.(values, key => given.has(key), program) ?? []))
  return { values, problems }
}

function describeMissing(option: Option, program: string): string {
  const { argument, variable, help, expected, advice } = option
  const name = variable ? `${label(option)} (${variable})` : label(option)
  const problem = missing(name, { expected: argument ? help : expected })
  return advice ? `${problem}; ${advice(program)}` : problem
}

export const withoutUser = (url: string) => url.replace(/\/\/.*@/s, '//…@')
/** A key has at least 16 characters, and a password follows a colon or `password=`. */
const mayBeSecret = (text: string) => /[^.\s]{16}|pets_|[=?]|:(?!\/\/)/.test(text)

/** Suggests a required flag that is not given and accepts this text: `keys create till` lacks only `--name`. */
function describeExtra(text: string, command: Command, texts: Texts, program: string): string {
  const lacks = ([key, option]: [string, Option]) => isRequired(option) && !option.variable && !texts[key]
  const flags = Object.entries(command.options).filter(lacks)
  const flag = mayBeSecret(text) ? undefined : flags.find(([, { read }]) => read(text) !== undefined)?.[1]
  const advice = flag ? `did you mean ${label(flag)} ${shellWord(text)}?` : `expected ${formatUsage(command, program)}`
  const shown = withoutUser(text)
  return `${mayBeSecret(shown) ? 'Too many arguments' : `Unexpected argument ${show(shown)}`}: ${advice}`
}

function describeUnknown(flag: string, command: Command, program: string): string {
  const near = findSimilar(flag, listFlags(command).flatMap(flagNames))
  const mayBeArgument = !flag.startsWith('--') && listArguments(command).length > 0
  const dashed = mayBeArgument ? '; type an argument that begins with a dash at the end, after --' : ''
  const advice = near ? `did you mean ${near}?` : `${program} ${command.name} --help lists the options${dashed}`
  return `Unknown option ${withoutUser(flag)}: ${advice}`
}
