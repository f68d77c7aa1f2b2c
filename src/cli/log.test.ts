import { describe, expect, jest, test } from 'bun:test'
import type { LogFields, LogLevel } from '../log.ts'
import { BufferedLog, waitingLinesMax } from './log.ts'

const fields: LogFields = {
  requestId: 'r-1',
  method: 'GET',
  operation: 'listPets',
  path: undefined,
  status: 200,
  durationMs: 0.4,
  client: undefined,
  key: 'till',
  traceparent: undefined,
}
const parseLines = (text: string) => Bun.JSONL.parse(text) as { level: string }[]

function lines({ level = 'info' as LogLevel, isTerminal = false, isStyled = false } = {}) {
  const written: string[] = []
  const err = (text: string) => void written.push(text)
  return { log: new BufferedLog(level, { err, isTerminal, isStyled }), written }
}

test.each<[LogFields, string]>([
  [
    {},
    '"requestId":"r-1","method":"GET","operation":"listPets","status":200,"durationMs":0.4,"client":"203.0.113.7","key":"till","traceparent":"00-1"}\n',
  ],
  [
    { operation: undefined, path: '/v1/"é"\n', durationMs: 1_000, client: undefined, key: undefined },
    '"requestId":"r-1","method":"GET","path":"/v1/\\"é\\"\\n","status":200,"durationMs":1000,"traceparent":"00-1"}\n',
  ],
])('without a terminal, a request is a line of JSON: %j', (given, expected) => {
  const { log, written } = lines()
  log.write('warn', 'request', { ...fields, client: '203.0.113.7', traceparent: '00-1', ...given })
  log.flush()
  const line = written.join('')
  const { time } = JSON.parse(line)
  expect(new Date(time).toISOString()).toBe(time)
  expect(line).toBe(`{"time":"${time}","level":"warn","message":"request",${expected}`)
})

test('without a terminal, every text is read back as it was, from one line', () => {
  const texts = ['"quoted" \\ text', 'one\ntwo', 'Zoë 🐕', '\u0000\u001b[31m\u009b2J', '', '\ud800']
  const { log, written } = lines()
  for (const text of texts) log.write('error', text, { key: text })
  expect(parseLines(written.join(''))).toMatchObject(texts.map(text => ({ message: text, key: text })))
  expect(written.join('').match(/\n/g)).toHaveLength(texts.length)
})

test.each([true, false])('on a terminal, lines are for people and no text forges one, with colours: %p', isStyled => {
  const { log, written } = lines({ isTerminal: true, isStyled })
  log.write('info', 'request', fields)
  log.write('info', 'request', { ...fields, operation: undefined, path: '/v1/x', status: 404, key: 'ti\rll' })
  log.write('error', 'internal\rerror', { requestId: 'r-1', cause: 'Error: x\n  at y\u001b[2J' })
  const text = written.join('')
  expect(text.includes('\u001b[31merror')).toBe(isStyled)
  const plain = isStyled ? Bun.stripANSI(text) : text
  expect(plain.replaceAll(/^\d\d:\d\d:\d\d /gm, '')).toBe(
    `200 GET listPets 0.4 ms till
404 GET /v1/x 0.4 ms ti\\u000dll r-1
error internal\\u000derror requestId=r-1 cause=Error: x
    at y\\u001b[2J
`,
  )
})

const levels = ['info', 'warn', 'error'] as const

test.each(levels.entries().toArray())('level %d, %s, shows itself and the levels above', (index, level) => {
  const { log, written } = lines({ level })
  for (const each of levels) log.write(each, each)
  log.flush()
  expect(parseLines(written.join('')).map(line => line.level)).toEqual(levels.slice(index))
  expect(levels.filter(each => log.isOn(each))).toEqual(levels.slice(index))
})

test('lines are written together after 100 ms; an error at once, with the lines before it', () => {
  const { log, written } = lines()
  jest.useFakeTimers()
  try {
    log.write('info', 'one')
    jest.advanceTimersByTime(99)
    log.write('info', 'two')
    expect(written).toEqual([])
    jest.advanceTimersByTime(1)
  } finally {
    jest.useRealTimers()
  }
  expect(written).toEqual([expect.stringMatching(/one.*\n.*two/)])
  log.write('info', 'before')
  log.write('error', 'broken')
  expect(written[1]).toMatch(/before.*\n.*broken/)
})

describe('if the log is not read', () => {
  const lost = 1_000

  /** A log whose reader waits for `readAgain`. */
  function unread() {
    const taken: string[] = []
    let reading = Promise.withResolvers<void>()
    const err = (text: string) => {
      taken.push(text)
      return reading.promise
    }
    const log = new BufferedLog('info', { err, isTerminal: false, isStyled: false })
    for (let i = 0; i < waitingLinesMax + lost; i++) log.write('info', `${i}`)
    log.flush()
    return {
      log,
      /** All lines since the last time. */
      taken: () => parseLines(taken.splice(0).join('')),
      async readAgain() {
        reading.resolve()
        reading = Promise.withResolvers<void>()
        await Bun.sleep(0)
      },
    }
  }

  test('a limited number of lines wait, and the dropped ones are reported once the reader catches up', async () => {
    const { log, taken, readAgain } = unread()
    const waiting = taken()
    expect(waiting).toHaveLength(waitingLinesMax)
    expect(waiting.at(-1)).toMatchObject({ message: `${waitingLinesMax - 1}` })
    await readAgain()
    expect(taken()).toMatchObject([{ level: 'warn', lines: lost }])
    await readAgain()
    log.write('info', 'after')
    log.flush()
    expect(taken()).toMatchObject([{ message: 'after' }])
  })
})
