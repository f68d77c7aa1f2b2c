/** Tells whoever waits where a run is: one line that changes on a terminal, plain lines elsewhere. */
export interface Progress {
  /** A part of the run begins, with so many steps. */
  begin(part: string, steps: number): void
  /** The next step begins. */
  step(what: string): void
  /** Something that should stay on the screen. */
  note(line: string): void
  end(): void
}

export function createProgress(): Progress {
  const isTerminal = process.stderr.isTTY === true
  const startedMs = performance.now()
  const clear = isTerminal ? '\r\u001b[K' : ''
  let current = { part: '', steps: 0 }
  let done = 0

  function line(what: string): string {
    const elapsedSeconds = Math.round((performance.now() - startedMs) / 1_000)
    const count = `${String(done).padStart(String(current.steps).length)} of ${current.steps}`
    const shown = `${elapsedSeconds} s, ${current.part}, ${count}: ${what}`
    return isTerminal ? shown.slice(0, Math.max(20, process.stderr.columns - 1)) : shown
  }

  return {
    begin(part, steps) {
      current = { part, steps }
      done = 0
    },
    step(what) {
      done++
      process.stderr.write(`${clear}${line(what)}${isTerminal ? '' : '\n'}`)
    },
    note: text => process.stderr.write(`${clear}petstore bench: ${text}\n`),
    end: () => process.stderr.write(clear),
  }
}
