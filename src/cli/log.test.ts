import { describe, expect, jest, test } from 'bun:test'
import type { LoggedRequest, LogLevel } from '../log.ts'
import { BufferedLog, waitingRequestsMax } from './log.ts'

const fields: LoggedRequest = {
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

function lines({ level = 'info' as LogLevel, isTerminal = false, isStyled = true } = {}) {
  const written: string[] = []
  const err = (text: string) => void written.push(text)
  return { log: new BufferedLog(level, { err, isTerminal, isStyled }), written }
}

describe('without a terminal', () => {
  test.each<Partial<LoggedRequest>>([
    {},
    { operation: undefined, path: '/v1/x', status: 404, key: undefined },
    {
      client: '203.0.113.7',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      durationMs: 1_000,
    },
  ])('a request is a line with time, level, message and the known fields, in this order: %j', given => {
    const { log, written } = lines()
    const { requestId, method, operation, path, status, durationMs, client, key, traceparent } = { ...fields, ...given }
    log.request('warn', { traceparent, key, client, durationMs, status, path, operation, method, requestId })
    log.flush()
    const { time } = JSON.parse(written.join(''))
    expect(new Date(time).toISOString()).toBe(time)
    const expected = { requestId, method, operation, path, status, durationMs, client, key, traceparent }
    expect(written.join('')).toBe(`${JSON.stringify({ time, level: 'warn', message: 'request', ...expected })}\n`)
  })

  const odd = ['"quoted" \\ text', 'one\ntwo', 'Zoë 🐕', '\u0000\u001b[31m', '', '\ud800']
  test.each(odd)('a field that is %j is read back as it was', value => {
    const { log, written } = lines()
    log.request('info', { ...fields, path: value, key: value })
    log.write('error', value, { key: value })
    const read = parseLines(written.join(''))
    expect(read).toMatchObject([
      { path: value, key: value },
      { message: value, key: value },
    ])
    expect(written.join('').match(/\n/g)).toHaveLength(2)
  })
})

test('on a terminal, a request is one readable line, and other lines name their fields', () => {
  const { log, written } = lines({ isTerminal: true })
  log.request('info', fields)
  log.request('info', { ...fields, operation: undefined, path: '/v1/x', status: 404 })
  log.write('error', 'request', { requestId: 'r-1', cause: 'Error: x' })
  expect(Bun.stripANSI(written.join('')).replaceAll(/^\d\d:\d\d:\d\d /gm, '')).toBe(
    '200 GET listPets 0.4 ms till\n404 GET /v1/x 0.4 ms till r-1\nerror request requestId=r-1 cause=Error: x\n',
  )
  expect(written.join('')).toContain('\u001b[32m200')
})

test('on a terminal without colours, a line has none', () => {
  const { log, written } = lines({ isTerminal: true, isStyled: false })
  log.request('info', fields)
  log.write('error', 'request', { cause: 'x\u001b[2J' })
  expect(written.join('')).toMatch(
    /^\d\d:\d\d:\d\d 200 GET .* till\n\d\d:\d\d:\d\d error request cause=x\\u001b\[2J\n$/,
  )
})

test('on a terminal, no text forges a line or sends control characters', () => {
  const { log, written } = lines({ isTerminal: true })
  log.write('error', 'internal\rerror', { cause: 'Error: x\n  at y\u001b[2J' })
  expect(Bun.stripANSI(written.join('')).slice('00:00:00 '.length)).toBe(
    'error internal\\u000derror cause=Error: x\n    at y\\u001b[2J\n',
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

describe('lines are written in batches', () => {
  test('after 100 ms; an error at once, with the lines before it', () => {
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
})

describe('if the log is not read', () => {
  const request = (index: number) => ({ ...fields, requestId: `r-${index}` })
  const expectedLine = (index: number) => JSON.parse(JSON.stringify(request(index)))
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
    for (let i = 0; i < waitingRequestsMax + lost; i++) log.request('info', request(i))
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

  test('a limited number of request lines wait, and the dropped ones are reported once the reader catches up', async () => {
    const { log, taken, readAgain } = unread()
    const waiting = taken()
    expect(waiting).toHaveLength(waitingRequestsMax)
    expect(waiting.at(-1)).toMatchObject(expectedLine(waitingRequestsMax - 1))
    await readAgain()
    expect(taken()).toMatchObject([{ level: 'warn', lines: lost }])
    await readAgain()
    log.request('info', request(-1))
    log.flush()
    expect(taken()).toMatchObject([expectedLine(-1)])
  })

  test('other lines have a limit of their own, and the end reports how many were dropped', () => {
    const { log, taken } = unread()
    taken()
    log.write('error', 'The writer failed')
    log.request('info', request(-1))
    log.write('info', 'Stopping')
    log.end()
    const dropped = { level: 'warn', lines: lost + 1 }
    expect(taken()).toMatchObject([{ message: 'The writer failed' }, { message: 'Stopping' }, dropped])
    for (let i = 0; i < 3 * waitingRequestsMax; i++) log.write('error', 'fault')
    expect(taken()).toHaveLength(waitingRequestsMax - 3)
  })
})
