/** From the most talkative to the most silent. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

/** What a line says besides its message: no key, and nothing that a client sent unless it is known to be harmless. */
export type LogFields = Readonly<Record<string, string | number | undefined>>

/** Where the program says what it does. A line below the chosen level costs next to nothing. */
export interface Log {
  write(level: LogLevel, message: string, fields?: LogFields): void
  isOn(level: LogLevel): boolean
}
