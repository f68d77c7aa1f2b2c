import { Presets, SingleBar } from 'cli-progress'
import type { Io } from './io.ts'

export interface Progress {
  /** From 0 to 1. */
  update(fraction: number): void
  /** May be called twice. */
  stop(): void
}

/** A bar where a person is watching, one plain line where nobody is. */
export function startProgress(label: string, io: Io): Progress {
  if (!io.isTerminal) return announce(label, io)
  const format = `${label} {bar} {percentage} %`
  const bar = new SingleBar(
    { format, stream: process.stderr, clearOnComplete: true, hideCursor: true },
    Presets.shades_classic,
  )
  bar.start(100, 0)
  return {
    update: fraction => bar.update(Math.round(fraction * 100)),
    stop: () => bar.stop(),
  }
}

/** The plain line, whoever is watching: for work whose end cannot be told. */
export function announce(label: string, io: Io): Progress {
  io.err(`${label}\n`)
  return unseen
}

/** For work beside which nothing may be shown. */
export const unseen: Progress = { update() {}, stop() {} }
