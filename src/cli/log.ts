import { type Log, type LogFields, type LoggedRequest, type LogLevel, logLevels } from '../log.ts'
import { type Io, visible } from './output.ts'

/** Lines are written in batches: one write for each would cost more than the request. */
const flushEveryMs = 100
/** About 64 KB. */
const batchLinesMax = 256
/** If the log is not read, this many request lines wait, about 1 MB; further ones are dropped and counted. */
export const waitingRequestsMax = 4_096
/** Other lines are rare, and are not dropped because of the requests. */
const waitingLinesMax = 2 * waitingRequestsMax

/** JSON lines; on a terminal, lines for people, with colours if they are wanted. */
export class BufferedLog implements Log {
  readonly #levelMin: number
  readonly #io: Pick<Io, 'err' | 'isTerminal' | 'isStyled'>
  /** Lines that are not written yet, as one text: keeping their fields until the flush costs twice as much. */
  #batch = ''
  #batchLines = 0
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
    if (!this.isOn(level) || this.#drops(waitingLinesMax)) return
    this.#add(level, this.#line(level, message, fields))
  }

  request(level: LogLevel, request: LoggedRequest): void {
    if (!this.isOn(level) || this.#drops(waitingRequestsMax)) return
    this.#add(level, this.#io.isTerminal ? this.#applyStyle(readableRequest(request)) : jsonRequest(level, request))
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const [text, lines] = [this.#batch, this.#batchLines]
    this.#batch = ''
    this.#batchLines = 0
    const writing = lines > 0 && this.#io.err(text, 'escaped')
    if (!writing) return
    this.#waiting += lines
    void writing.then(() => {
      this.#waiting -= lines
      if (this.#waiting === 0) this.#reportDropped()
    })
  }

  /** Flushes, and reports dropped lines to a reader that may come back after the end. */
  end(): void {
    this.flush()
    this.#reportDropped()
  }

  /** Counts the next line as dropped if this many lines wait already. */
  #drops(linesMax: number): boolean {
    if (this.#waiting + this.#batchLines < linesMax) return false
    this.#dropped++
    return true
  }

  #add(level: LogLevel, line: string): void {
    this.#batch += line
    this.#batchLines++
    // An error is written at once: the process may end before the next flush.
    if (level === 'error' || this.#batchLines >= batchLinesMax) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), flushEveryMs).unref()
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return
    const fields = { lines: this.#dropped }
    this.#dropped = 0
    this.#add('warn', this.#line('warn', 'Dropped log lines: the log was not read', fields))
    this.flush()
  }

  #line(level: LogLevel, message: string, fields: LogFields): string {
    const { isTerminal } = this.#io
    return isTerminal ? this.#applyStyle(readableLine(level, message, fields)) : jsonLine(level, message, fields)
  }

  /** Only the colours are control characters: those of texts are escaped. */
  #applyStyle(line: string): string {
    return this.#io.isStyled ? line : Bun.stripANSI(line)
  }
}

function jsonLine(level: LogLevel, message: string, fields: LogFields): string {
  const rest = JSON.stringify(fields).slice(1)
  return `${jsonHead(level)}${JSON.stringify(message)}${rest === '}' ? '' : ','}${rest}\n`
}

/** Written by hand: `JSON.stringify` of an object costs several times more. */
function jsonRequest(level: LogLevel, request: LoggedRequest): string {
  const { requestId, method, operation, path, status, durationMs, client, key, traceparent } = request
  const what = operation === undefined ? '' : `","operation":"${operation}`
  const where = path === undefined ? '"' : `","path":${JSON.stringify(path)}`
  const from = client === undefined ? '' : `,"client":"${client}"`
  const who = key === undefined ? '' : keyField(key)
  const end = traceparent === undefined ? '}\n' : `,"traceparent":"${traceparent}"}\n`
  const sent = `"request","requestId":"${requestId}","method":"${method}${what}${where}`
  return `${jsonHead(level)}${sent},"status":${status},"durationMs":${numberText(durationMs)}${from}${who}${end}`
}

function jsonHead(level: LogLevel): string {
  return `${timeField(Date.now())}${level}","message":`
}

/** Remembers the last result: many lines in a row share the millisecond, the key and the duration. */
function rememberLast<A, R>(make: (argument: A) => R): (argument: A) => R {
  let last: { readonly argument: A; readonly result: R } | undefined
  return argument => {
    if (last?.argument !== argument) last = { argument, result: make(argument) }
    return last.result
  }
}

const timeField = rememberLast((ms: number) => `{"time":"${new Date(ms).toISOString()}","level":"`)
const keyField = rememberLast((key: string) => `,"key":${JSON.stringify(key)}`)
const numberText = rememberLast(String)

const colours = { dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const
const paint = (colour: keyof typeof colours, text: unknown) => `\u001b[${colours[colour]}m${text}\u001b[0m`

function readableLine(level: LogLevel, message: string, fields: LogFields): string {
  const named = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${indent(value)}`],
  )
  const word = paint(level === 'error' ? 'red' : level === 'warn' ? 'yellow' : 'dim', level)
  return `${[clockTime(), word, indent(message), ...named].join(' ')}\n`
}

/** Indents further lines, such as those of a stack, so that no text can forge a line of the log. */
const indent = (value: unknown) => String(value).split('\n').map(visible).join('\n  ')

/** `200 GET listPets 0.4 ms till` */
function readableRequest(request: LoggedRequest): string {
  const { status, method, operation, path, durationMs, key, requestId } = request
  const parts = [
    clockTime(),
    paint(status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green', status),
    `${method} ${operation ?? visible(path ?? '')} ${durationMs} ms`,
    key ? paint('cyan', visible(key)) : '',
    status >= 400 ? paint('dim', requestId) : '',
  ]
  return `${parts.filter(part => part !== '').join(' ')}\n`
}

function clockTime(): string {
  return paint('dim', new Date().toTimeString().slice(0, 8))
}
