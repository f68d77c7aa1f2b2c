import { type Command, InvalidArgumentError } from 'commander'
import type { Setting } from './settings.ts'

export function command(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).summary(description)
}

export function addSetting(to: Command, { flag, placeholder, variable, help }: Setting): Command {
  return to.option(`--${flag}${placeholder ? ` <${placeholder}>` : ''}`, `${help} [${variable}]`)
}

/** A shell gives nothing where a variable is not set: better told here than by whoever opens a file without a name. */
export function fileName(given: string): string {
  if (given === '') throw new InvalidArgumentError('Expected the name of a file.')
  return given
}
