import { type Log, type LogFields, type LogLevel, logLevels } from '../log.ts'
import type { Io } from './output.ts'

/** Lines are written in batches: one write for each would cost more than the request. */
const flushEveryMs = 100
/** About 64 KB. */
const batchLinesMax = 256
/** If the log is not read, this many request lines wait, about 1 MB; further ones are dropped and counted. */
export const waitingRequestsMax = 4_096
/** Other lines are rare, and are not dropped because of the requests. */
const waitingLinesMax = 2 * waitingRequestsMax

interface Line {
  readonly atMs: number
  readonly level: LogLevel
  /** Absent for a request. */
  readonly message?: string
  readonly fields: LogFields
}

/** JSON lines; on a terminal, coloured lines for people. */
export class BufferedLog implements Log {
  readonly #levelMin: number
  readonly #io: Pick<Io, 'err' | 'isTerminal'>
  #lines: Line[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Lines that were passed to `write` and are not written yet. */
  #waiting = 0
  #dropped = 0

  constructor(level: LogLevel, io: Pick<Io, 'err' | 'isTerminal'>) {
    this.#levelMin = logLevels.indexOf(level)
    this.#io = io
  }

  isOn(level: LogLevel): boolean {
    return logLevels.indexOf(level) >= this.#levelMin
  }

  write(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (this.isOn(level)) this.#add({ atMs: Date.now(), level, message, fields })
  }

  request(level: LogLevel, fields: LogFields): void {
    if (this.isOn(level)) this.#add({ atMs: Date.now(), level, fields })
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const batch = this.#lines
    this.#lines = []
    const total = this.#waiting + batch.length
    const max = (line: Line) => (line.message === undefined ? waitingRequestsMax : waitingLinesMax)
    const fitting = batch.filter(line => total <= max(line))
    this.#dropped += batch.length - fitting.length
    this.#writeBatch(fitting)
  }

  /** Flushes, and reports dropped lines to a reader that may come back after the end. */
  end(): void {
    this.flush()
    this.#reportDropped()
  }

  #add(line: Line): void {
    this.#lines.push(line)
    // An error is written at once: the process may end before the next flush.
    if (line.level === 'error' || this.#lines.length >= batchLinesMax) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), flushEveryMs).unref()
  }

  #writeBatch(lines: readonly Line[]): void {
    if (lines.length === 0) return
    const writing = this.#io.err(lines.map(this.#io.isTerminal ? readableLine : jsonLine).join(''))
    if (!writing) return
    this.#waiting += lines.length
    void writing.then(() => {
      this.#waiting -= lines.length
      if (this.#waiting === 0) this.#reportDropped()
    })
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return
    const [message, fields] = ['Dropped log lines: the log was not read', { lines: this.#dropped }]
    this.#dropped = 0
    this.#writeBatch([{ atMs: Date.now(), level: 'warn', message, fields }])
  }
}

/** Concatenates, because collecting everything in one object first is slower. */
function jsonLine({ atMs, level, message = 'request', fields }: Line): string {
  const head = `{"time":"${isoTime(atMs)}","level":"${level}","message":${JSON.stringify(message)}`
  const rest = JSON.stringify(fields).slice(1)
  return rest === '}' ? `${head}}\n` : `${head},${rest}\n`
}

const lastTime = { ms: 0, text: '' }

/** Caches the last result: many lines share a millisecond. */
function isoTime(ms: number): string {
  if (ms !== lastTime.ms) {
    lastTime.ms = ms
    lastTime.text = new Date(ms).toISOString()
  }
  return lastTime.text
}

const colours = { dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const
const paint = (colour: keyof typeof colours, text: unknown) => `\u001b[${colours[colour]}m${text}\u001b[0m`

function readableLine({ atMs, level, message, fields }: Line): string {
  const time = paint('dim', new Date(atMs).toTimeString().slice(0, 8))
  if (message === undefined) return `${time} ${requestLine(fields)}\n`
  const named = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
  const word = paint(level === 'error' ? 'red' : level === 'warn' ? 'yellow' : 'dim', level)
  return `${[time, word, message, ...named].join(' ')}\n`
}

/** `200 GET listPets 0.4 ms till` */
function requestLine({ status, method, operation, path, durationMs, key, requestId }: LogFields): string {
  const code = Number(status)
  const parts = [
    paint(code >= 500 ? 'red' : code >= 400 ? 'yellow' : 'green', status),
    `${method} ${operation ?? path} ${durationMs} ms`,
    key ? paint('cyan', key) : '',
    code >= 400 ? paint('dim', requestId) : '',
  ]
  return parts.filter(part => part !== '').join(' ')
}
