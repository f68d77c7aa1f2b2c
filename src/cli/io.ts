import type { Awaitable } from '../store.ts'

/** What a command may touch of the process around it. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Results. Settles when they are written; rejects where they cannot be. */
  out(text: string): Promise<void>
  /** Everything else. Settles when it is written, or cannot be; at once where that is at once. */
  err(text: string): Awaitable<void>
  /** Whether a person is watching what goes to `err`. */
  readonly isTerminal: boolean
}

export const exitCode = { success: 0, failure: 1, misuse: 2 } as const

/** The command was given something that it cannot use. Each problem is a line of its own. */
export class Misuse extends Error {
  override readonly name = 'Misuse'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}
