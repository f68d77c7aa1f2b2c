import { type Log, type LogFields, type LogLevel, logLevels } from '../log.ts'
import { type Io, visible } from './output.ts'

/** Lines are written in batches: one write for each would cost more than the request. */
const flushEveryMs = 100
/** About 64 KB. */
const batchLinesMax = 256
/** If the log is not read, this many lines wait, about 1 MB; further ones are dropped and counted. */
export const waitingLinesMax = 4_096

/** JSON lines; on a terminal, lines for people, with colours if they are wanted. */
export class BufferedLog implements Log {
  readonly #levelMin: number
  readonly #io: Pick<Io, 'err' | 'isTerminal' | 'isStyled'>
  /** Lines that are not written yet, as text: keeping their fields until the flush costs twice as much. */
  readonly #batch: string[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Lines that were passed to `err` and are not written yet. */
  #waiting = 0
  #dropped = 0

  constructor(level: LogLevel, io: Pick<Io, 'err' | 'isTerminal' | 'isStyled'>) {
    this.#levelMin = logLevels.indexOf(level)
    this.#io = io
  }

  isOn(level: LogLevel): boolean {
    return logLevels.indexOf(level) >= this.#levelMin
  }

  write(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (!this.isOn(level)) return
    if (this.#waiting + this.#batch.length >= waitingLinesMax) {
      this.#dropped++
      return
    }
    const { isTerminal, isStyled } = this.#io
    const line = isTerminal ? readableLine(level, message, fields) : jsonLine(level, message, fields)
    // Only the colours are control characters: those of texts are escaped.
    this.#batch.push(`${isTerminal && !isStyled ? Bun.stripANSI(line) : line}\n`)
    // An error is written at once: the process may end before the next flush.
    if (level === 'error' || this.#batch.length >= batchLinesMax) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), flushEveryMs).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = this.#batch.splice(0)
    const writing = lines.length > 0 && this.#io.err(lines.join(''), 'escaped')
    if (!writing) return
    this.#waiting += lines.length
    void writing.then(() => {
      this.#waiting -= lines.length
      if (this.#waiting > 0 || this.#dropped === 0) return
      this.write('warn', 'Dropped log lines: the log was not read', { lines: this.#dropped })
      this.#dropped = 0
      this.flush()
    })
  }
}

function jsonLine(level: LogLevel, message: string, fields: LogFields): string {
  return JSON.stringify({ time: new Date().toISOString(), level, message, ...fields })
}

const colours = { dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const
const paint = (colour: keyof typeof colours, text: string) => `\u001b[${colours[colour]}m${text}\u001b[0m`

/** `12:00:00 warn Replaced a connection waitedMs=5000` */
function readableLine(level: LogLevel, message: string, fields: LogFields): string {
  const time = paint('dim', new Date().toTimeString().slice(0, 8))
  if (message === 'request') return `${time} ${readableRequest(fields)}`
  const word = paint(level === 'error' ? 'red' : level === 'warn' ? 'yellow' : 'dim', level)
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  const named = given.map(([name, value]) => `${paint('dim', `${name}=`)}${indent(value)}`)
  return [time, word, indent(message), ...named].join(' ')
}

/** `200 GET listPets 0.4 ms till` */
function readableRequest({ status = 0, method, operation, path, durationMs, key, requestId }: LogFields): string {
  const isError = Number(status) >= 400
  const parts = [
    paint(Number(status) >= 500 ? 'red' : isError ? 'yellow' : 'green', String(status)),
    `${method} ${operation ?? indent(path)} ${durationMs} ms`,
    ...(key === undefined ? [] : [paint('cyan', indent(key))]),
    ...(isError ? [paint('dim', String(requestId))] : []),
  ]
  return parts.join(' ')
}

/** Indents further lines, such as those of a stack, so that no text can forge a line of the log. */
const indent = (value: unknown) => String(value).split('\n').map(visible).join('\n  ')
