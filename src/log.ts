export const logLevels = ['info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

/** Never an API key, and text from a client only if it is known to be harmless. */
export type LogFields = Readonly<Record<string, string | number | undefined>>

/** One request. Only `path` and `key` may need escaping in JSON. */
export type LoggedRequest = {
  readonly requestId: string
  readonly method: string
  readonly operation: string | undefined
  readonly path: string | undefined
  readonly status: number
  readonly durationMs: number
  readonly client: string | undefined
  readonly key: string | undefined
  readonly traceparent: string | undefined
}

/** A line below the chosen level costs almost nothing. */
export interface Log {
  write(level: LogLevel, message: string, fields?: LogFields): void
  request(level: LogLevel, request: LoggedRequest): void
  isOn(level: LogLevel): boolean
}
