import type { Command } from 'commander'
import type { Setting } from './settings.ts'

export function command(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).summary(description)
}

export function addSetting(to: Command, { flag, placeholder, variable, help }: Setting): Command {
  return to.option(`--${flag} <${placeholder}>`, `${help} [${variable}]`)
}
