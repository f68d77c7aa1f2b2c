import { type Flags, type Setting, settings } from './settings.ts'

/**
 * Flags written as the help shows them, each known and with its value. Undefined for anything else: commander judges that, and
 * takes 10 ms to load.
 */
export function plainFlags(args: readonly string[]): Flags | undefined {
  const known: Map<string, readonly [string, Setting]> = new Map(
    Object.entries(settings).map(([name, setting]) => [`--${setting.flag}`, [name, setting]]),
  )
  const flags: Record<string, string> = {}
  for (let i = 0; i < args.length; i++) {
    const [name, setting] = known.get(args[i] ?? '') ?? []
    const value = setting?.placeholder === undefined ? 'true' : args[++i]
    if (name === undefined || value === undefined || value.startsWith('-')) return undefined
    flags[name] = value
  }
  return flags
}
