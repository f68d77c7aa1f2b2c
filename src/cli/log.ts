import { type Log, type LogFields, type LogLevel, logLevels } from '../log.ts'
import type { Awaitable } from '../store.ts'

export interface LogOptions {
  readonly level: LogLevel
  /** A readable, coloured line for a person, instead of JSON for a program. */
  readonly isTerminal: boolean
  /** Settles when the text is written; at once where that is at once. */
  write(text: string): Awaitable<void>
}

export interface BufferedLog extends Log {
  flush(): void
  /** The last word: whoever reads again after it is told what was lost. */
  end(): void
}

/** Lines are made and written together: one by one they would cost more than the requests that they tell of. */
const flushEveryMs = 100
/** Some 64 KB. */
const linesMax = 256
/** Where nobody reads them, no more lines of requests than this wait to be written, some 1 MB; the next ones are lost, and counted. */
export const unwrittenRequestsMax = 4_096

/** What is told beside the requests is rare, and not lost with them. */
function unwrittenMax({ message }: Line): number {
  return message === 'request' ? unwrittenRequestsMax : 2 * unwrittenRequestsMax
}

interface Line {
  readonly atMs: number
  readonly level: LogLevel
  readonly message: string
  readonly fields: LogFields
}

export function createLog({ level, isTerminal, write }: LogOptions): BufferedLog {
  const lowest = logLevels.indexOf(level)
  const render = isTerminal ? readableLine : jsonLine
  let lines: Line[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let unwritten = 0
  let lost = 0

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    if (lines.length === 0) return
    const taken = lines
    lines = []
    const kept = taken.filter(line => unwritten + taken.length <= unwrittenMax(line))
    lost += taken.length - kept.length
    if (kept.length > 0) writeAll(kept)
  }

  function writeAll(taken: readonly Line[]): void {
    const writing = write(taken.map(render).join(''))
    if (!writing) return
    unwritten += taken.length
    void writing.then(() => {
      unwritten -= taken.length
      if (unwritten === 0) tellLoss()
    })
  }

  function tellLoss(): void {
    if (lost === 0) return
    const fields = { lines: lost }
    lost = 0
    writeAll([
      { atMs: Date.now(), level: 'warn', message: 'Lines of the log were lost: nobody read them', fields },
    ])
  }

  const isOn = (asked: LogLevel) => logLevels.indexOf(asked) >= lowest
  return {
    isOn,
    write(asked, message, fields = {}) {
      if (!isOn(asked)) return
      lines.push({ atMs: Date.now(), level: asked, message, fields })
      // What went wrong is told at once: the process may not live to tell it later.
      if (asked === 'error' || lines.length >= linesMax) flush()
      else timer ??= setTimeout(flush, flushEveryMs).unref()
    },
    request(level, fields) {
      this.write(level, 'request', fields)
    },
    flush,
    end() {
      flush()
      tellLoss()
    },
  }
}

/** The fields are written as they are: to gather everything in one object first takes longer. */
function jsonLine({ atMs, level, message, fields }: Line): string {
  const head = `{"time":"${isoTime(atMs)}","level":"${level}","message":${JSON.stringify(message)}`
  const rest = JSON.stringify(fields).slice(1)
  return rest === '}' ? `${head}}\n` : `${head},${rest}\n`
}

const lastTime = { ms: 0, text: '' }

/** Many lines are of one millisecond. */
function isoTime(ms: number): string {
  if (ms !== lastTime.ms) {
    lastTime.ms = ms
    lastTime.text = new Date(ms).toISOString()
  }
  return lastTime.text
}

const colours = { dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const

function paint(colour: keyof typeof colours, text: string): string {
  return `\u001b[${colours[colour]}m${text}\u001b[0m`
}

/** `12:00:00 200 GET listPets 0.4 ms till` */
function readableLine({ atMs, level, message, fields }: Line): string {
  const time = paint('dim', new Date(atMs).toTimeString().slice(0, 8))
  if (message === 'request') return `${time} ${requestLine(fields)}\n`
  const rest = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  )
  const word = paint(level === 'error' ? 'red' : level === 'warn' ? 'yellow' : 'dim', level)
  return `${[time, word, message, ...rest].join(' ')}\n`
}

function requestLine({ status, method, operation, path, durationMs, key, requestId }: LogFields): string {
  const code = Number(status)
  const colour = code >= 500 ? 'red' : code >= 400 ? 'yellow' : 'green'
  const what = `${method} ${operation ?? path}`
  const id = code >= 400 ? paint('dim', String(requestId)) : ''
  return [paint(colour, String(status)), what, `${durationMs} ms`, key ? paint('cyan', String(key)) : '', id]
    .filter(part => part !== '')
    .join(' ')
}
