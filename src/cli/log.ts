import { type Log, type LogFields, type LogLevel, logLevels } from '../log.ts'

export interface LogOptions {
  readonly level: LogLevel
  /** A readable, coloured line for a person, instead of JSON for a program. */
  readonly isTerminal: boolean
  write(text: string): void
}

export interface BufferedLog extends Log {
  flush(): void
}

/** Lines are written together: one by one they would cost more than the requests that they tell of. */
const flushEveryMs = 100
const bufferedCharsMax = 64 * 1_024

export function createLog({ level, isTerminal, write }: LogOptions): BufferedLog {
  const lowest = logLevels.indexOf(level)
  const render = isTerminal ? readableLine : jsonLine
  let buffered = ''
  let timer: ReturnType<typeof setTimeout> | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    if (buffered === '') return
    const text = buffered
    buffered = ''
    write(text)
  }

  const isOn = (asked: LogLevel) => logLevels.indexOf(asked) >= lowest
  return {
    isOn,
    write(asked, message, fields = {}) {
      if (!isOn(asked)) return
      buffered += render(asked, message, fields)
      // What went wrong is told at once: the process may not live to tell it later.
      if (asked === 'error' || buffered.length > bufferedCharsMax) flush()
      else timer ??= setTimeout(flush, flushEveryMs).unref()
    },
    flush,
  }
}

/** Put together by hand: JSON.stringify takes three times as long, and there is a line for every request. */
function jsonLine(level: LogLevel, message: string, fields: LogFields): string {
  let line = `{"time":"${isoTime()}","level":"${level}","message":${quoted(message)}`
  for (const name in fields) {
    const value = fields[name]
    if (value !== undefined) line += `,"${name}":${typeof value === 'number' ? value : quoted(value)}`
  }
  return `${line}}\n`
}

const plainText = /^[ !#-[\]-~]*$/

function quoted(text: string): string {
  return plainText.test(text) ? `"${text}"` : JSON.stringify(text)
}

const lastTime = { ms: 0, text: '' }

/** Many lines are written within one millisecond. */
function isoTime(): string {
  const ms = Date.now()
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
function readableLine(level: LogLevel, message: string, fields: LogFields): string {
  const time = paint('dim', new Date().toTimeString().slice(0, 8))
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
