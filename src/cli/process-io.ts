import { fstatSync } from 'node:fs'
import { SetupError } from '../errors.ts'
import type { Io } from './io.ts'

/** This process's own environment and streams. Not `process.stdout`: to load that takes as long as to start a small server. */
export function createProcessIo(): Io {
  const [out, err] = [Bun.stdout.writer(), Bun.stderr.writer()]
  return {
    env: process.env,
    async out(text) {
      try {
        await out.write(text)
        await out.flush()
      } catch (cause) {
        const { code, message } = cause as { code?: string; message: string }
        // Whoever closes the pipe has read enough, and that is for the caller to judge.
        throw code === 'EPIPE' ? cause : new SetupError(`Cannot write to stdout: ${message}`, { cause })
      }
    },
    err(text) {
      // If stderr is gone there is no place to report it; the failure may come now or later.
      const written = attempt(() => err.write(text))
      const flushed = attempt(() => err.flush())
      return written || flushed ? Promise.all([written, flushed]).then(ignore) : undefined
    },
    isTerminal: isTerminal(),
  }
}

const ignore = () => {}

/** Settles when it is done or has failed; undefined if it is done already. */
function attempt(write: () => number | Promise<number>): Promise<unknown> | undefined {
  try {
    const outcome = write()
    return typeof outcome === 'number' ? undefined : outcome.catch(ignore)
  } catch {
    return undefined
  }
}

/** Asked only where stderr may be one: a pipe or a file, as a service has it, is none. */
function isTerminal(): boolean {
  try {
    return fstatSync(2).isCharacterDevice() && process.stderr.isTTY === true
  } catch {
    // It was closed before we were started.
    return false
  }
}
