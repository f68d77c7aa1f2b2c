export const logLevels = ['info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

/** Never an API key, and text from a client only if it is known to be harmless. */
export type LogFields = Readonly<Record<string, string | number | undefined>>

/** A line below the chosen level costs almost nothing. */
export interface Log {
  write(level: LogLevel, message: string, fields?: LogFields): void
  isOn(level: LogLevel): boolean
}
