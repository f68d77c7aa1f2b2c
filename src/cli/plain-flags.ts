import { type Flags, settings } from './settings.ts'

/**
 * Flags that stand there as the help shows them, each known and with its value. Undefined for anything else: that is for
 * commander to judge, which takes 10 ms to load.
 */
export function plainFlags(args: readonly string[]): Flags | undefined {
  const names = new Map(Object.entries(settings).map(([name, { flag }]) => [`--${flag}`, name]))
  const flags: Record<string, string> = {}
  for (let i = 0; i < args.length; i += 2) {
    const [name, value] = [names.get(args[i] ?? ''), args[i + 1]]
    if (name === undefined || value === undefined || value.startsWith('-')) return undefined
    flags[name] = value
  }
  return flags
}
