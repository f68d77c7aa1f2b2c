// The process of a command: its environment, streams, version and exit codes.

import { fstatSync } from 'node:fs'
import manifest from '../../package.json' with { type: 'json' }
import { readCode, SetupError } from '../errors.ts'

/** Set by the build of the executable. */
declare const PETSTORE_COMMIT: string | undefined

export const { version } = manifest
/** The commit that the executable was built from, or `source` for a clone or a package. */
const commit = typeof PETSTORE_COMMIT === 'undefined' ? 'source' : PETSTORE_COMMIT
const isExecutable = commit !== 'source'
export const build = { version, commit }
/** `petstore 1.0.0 (commit b0402dc, linux x64, Bun 1.4.4)` */
export const versionLine = `petstore ${version} (${isExecutable ? 'commit ' : ''}${commit}, ${process.platform} ${process.arch}, Bun ${Bun.version})`

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The program as a person types it, for messages: `petstore`, `bin/petstore` or `'/my folder/petstore'`. */
  readonly program: string
  /** Writes results. Rejects if they cannot be written. A terminal gets control characters escaped. */
  out(text: string): Promise<void>
  /** The same for everything else, unless it is escaped already. A promise is pending until it is written or has failed. */
  err(text: string, escaped?: 'escaped'): void | Promise<void>
  /** Whether stderr is a terminal. */
  readonly isTerminal: boolean
  /** Whether it may get colours and lines that are overwritten. */
  readonly isStyled: boolean
}

/** A word as it is typed in a shell: `pets.db` or `'my pets.db'`. */
export const shellWord = (text: string) => (/^[\w:./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

export const exitCode = { success: 0, failure: 1, usage: 2 } as const

/** This process's environment and streams. Avoids `process.stdout`, which takes milliseconds to load. */
export function createProcessIo(): Io {
  const [out, err] = [Bun.stdout.writer(), Bun.stderr.writer()]
  const isErrTerminal = isTerminal(2)
  return {
    env: process.env,
    program: shellWord((isExecutable ? process.argv0 : process.env['PETSTORE_PROGRAM']) || 'petstore'),
    async out(text) {
      try {
        await out.write(isTerminal(1) ? visibleLines(text) : text)
        await out.flush()
      } catch (cause) {
        if (readCode(cause) === 'EPIPE') throw cause
        throw new SetupError(`Cannot write to stdout: ${(cause as Error).message}`, { cause })
      }
    },
    async err(text, escaped) {
      const shown = isErrTerminal && !escaped ? visibleLines(text) : text
      try {
        // Both are called at once: the process may exit next.
        await Promise.all([err.write(shown), err.flush()])
      } catch {
        // There is no other place to report it.
      }
    },
    isTerminal: isErrTerminal,
    isStyled: isErrTerminal && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb',
  }
}

/** Loads `process.stdout` or `process.stderr` only for a character device: a service's pipe or file is none. */
export function isTerminal(fd: 1 | 2): boolean {
  try {
    return fstatSync(fd).isCharacterDevice() && process[fd === 1 ? 'stdout' : 'stderr'].isTTY === true
  } catch {
    // It was closed before the start.
    return false
  }
}

// Control characters, line separators and bidirectional controls, but not the joiners that emoji need.
const invisible = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Escapes text from elsewhere so that it cannot control a terminal. JSON stays valid and means the same. */
export function visible(text: string): string {
  return text.replace(invisible, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Escapes each line, and keeps the line breaks. */
function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n')
}
