// What every command reads from its process and prints: streams, tables, questions, progress.

import { fstatSync, readFileSync } from 'node:fs'
import manifest from '../../package.json' with { type: 'json' }
import { readCode, SetupError } from '../errors.ts'
import type { Pet } from '../pet.ts'

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

/** Messages name a command as `petstore keys create`; a person types the program as called. Other text stays. */
export function asCalled(message: string, program: string): string {
  return message.replace(/(?<![\w/"'-])petstore (?=(serve|keys|restore|export|import)\b)/g, () => `${program} `)
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
      if (isStdoutClosed()) throw new SetupError('stdout is closed: open it, for example with >/dev/null')
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

/**
 * Whether stdout was closed at the start. Bun opens /dev/null instead, with close-on-exec, which no inherited file has.
 * Only Linux reports it; elsewhere, `bin/petstore` checks.
 */
function isStdoutClosed(): boolean {
  try {
    const [, flags = ''] = /^flags:\s*(\d+)$/m.exec(readFileSync('/proc/self/fdinfo/1', 'utf8')) ?? []
    return (Number.parseInt(flags, 8) & closeOnExec) !== 0
  } catch {
    return false
  }
}

const closeOnExec = 0o2000000

/** Loads `process.stdout` or `process.stderr` only for a character device: a service's pipe or file is none. */
export function isTerminal(fd: 1 | 2): boolean {
  try {
    return fstatSync(fd).isCharacterDevice() && process[fd === 1 ? 'stdout' : 'stderr'].isTTY === true
  } catch {
    // It was closed before the start.
    return false
  }
}

/** The name is the last column, because it can be a thousand characters wide: a terminal shows as much as fits. */
export function petTable(pets: readonly Pet[], fd: 1 | 2): string {
  const rows = pets.map(({ id, name, categoryId, status }) => [`${id}`, status ?? '-', `${categoryId}`, visible(name)])
  const columnsMax = (isTerminal(fd) && process[fd === 1 ? 'stdout' : 'stderr'].columns) || Number.POSITIVE_INFINITY
  const isWide = (line: string) => Bun.stringWidth(line) > columnsMax
  // The last character may be wide, and take one column more.
  const cut = (line: string) => (isWide(line) ? `${Bun.sliceAnsi(line, 0, columnsMax - 2)}…` : line)
  return table(['ID', 'STATUS', 'CATEGORY', 'NAME'], rows).replace(/.+/g, cut)
}

/** Columns as wide as their widest cell, with two spaces between them. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map(row => Bun.stringWidth(row[column] ?? ''))))
  const pad = (cell: string, column: number) => cell + ' '.repeat((widths[column] ?? 0) - Bun.stringWidth(cell))
  return all.map(row => `${row.map(pad).join('  ').trimEnd()}\n`).join('')
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

/** A command that waits longer than this says so. */
export const silentMsMax = 1_000

export async function announceIfSlow<T>(work: Promise<T>, io: Io, message = 'Waiting for the store'): Promise<T> {
  const timer = setTimeout(() => io.err(`${message}\n`), silentMsMax)
  return await work.finally(() => clearTimeout(timer))
}

/** `1 animal`, `1,000 animals` */
export function animals(count: number | bigint): string {
  return `${count.toLocaleString('en')} ${BigInt(count) === 1n ? 'animal' : 'animals'}`
}

/** A pipe must not answer a question: without a terminal, a command that asks needs --yes. */
export function confirmationProblems(yes: boolean | undefined): readonly string[] {
  return yes || (isTerminal(2) && process.stdin.isTTY) ? [] : ['Cannot ask without a terminal: use --yes']
}

/** Whether the next line of stdin is yes. */
export async function isConfirmed(question: string, io: Io): Promise<boolean> {
  await io.err(`${question} [y/N] `)
  for await (const line of console) return /^\s*y(es)?\s*$/i.test(line)
  // After Ctrl-D, the cursor is still behind the question.
  await io.err('\n')
  return false
}

/** `2030-01-31 12:00Z` */
export function minute(date: Date | undefined): string {
  return date ? `${date.toISOString().slice(0, 16).replace('T', ' ')}Z` : 'never'
}

export type Progress = ReturnType<typeof startProgress>

/** A percentage that is overwritten until it is stopped; where that is unwanted, or without a total, only the label. */
export function startProgress(label: string, io: Pick<Io, 'err' | 'isStyled'>, isTotalKnown = true) {
  const isShown = io.isStyled && isTotalKnown
  let shown: number | undefined
  const update = (fraction: number) => {
    const percent = Math.round(fraction * 100)
    if (isShown && percent !== shown) io.err(`\r${visible(label)} ${percent} %`, 'escaped')
    shown = percent
  }
  /** May be called twice. */
  const stop = () => {
    if (isShown && shown !== undefined) io.err('\r\u001b[K', 'escaped')
    shown = undefined
  }
  if (isShown) update(0)
  else io.err(`${label}\n`)
  return { update, stop, [Symbol.dispose]: stop }
}
