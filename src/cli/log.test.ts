import { expect, test } from 'bun:test'
import { advance, settle, standingClock } from '../../test/support/clock.ts'
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
const parseLines = (text: string) => Bun.JSONL.parse(text) as Record<string, unknown>[]

function lines({ level = 'info' as LogLevel, isTerminal = false, isStyled = false } = {}) {
  const written: string[] = []
  const err = (text: string) => void written.push(text)
  return { log: new BufferedLog(level, { err, isTerminal, isStyled }), written }
}

test('without a terminal, a request is a line of JSON', () => {
  const { log, written } = lines()
  const given = { ...fields, path: '/v1/"é"\n', client: '203.0.113.7', key: undefined, traceparent: '00-1' }
  log.write('warn', 'request', given)
  log.flush()
  const time = expect.stringMatching(/^[\d-]{10}T[\d:.]{12}Z$/)
  expect(parseLines(written.join(''))).toEqual([{ time, level: 'warn', message: 'request', ...given }])
  expect(written.join('').match(/\n/g)).toHaveLength(1)
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
  expect(parseLines(written.join('')).map(line => line['level'])).toEqual(levels.slice(index))
  expect(levels.filter(each => log.isOn(each))).toEqual(levels.slice(index))
})

test('lines are written together after 100 ms; an error at once, with the lines before it', async () => {
  const { log, written } = lines()
  using _ = standingClock()
  for (const text of ['one', 'two']) log.write('info', text)
  expect(written).toEqual([])
  await advance(100)
  expect(written).toEqual([expect.stringMatching(/one.*\n.*two/)])
  log.write('info', 'before')
  log.write('error', 'broken')
  expect(written[1]).toMatch(/before.*\n.*broken/)
})

test('if the log is not read, a limited number of lines wait, and the dropped ones are reported later', async () => {
  const written: string[] = []
  let reading = Promise.withResolvers<void>()
  const err = (text: string) => {
    written.push(text)
    return reading.promise
  }
  const log = new BufferedLog('info', { err, isTerminal: false, isStyled: false })
  const taken = () => parseLines(written.splice(0).join(''))
  const readAgain = async () => {
    reading.resolve()
    reading = Promise.withResolvers()
    await settle()
  }
  for (let i = 0; i < waitingLinesMax + 1_000; i++) log.write('info', `${i}`)
  log.flush()
  const waiting = taken()
  expect(waiting).toHaveLength(waitingLinesMax)
  expect(waiting.at(-1)).toMatchObject({ message: `${waitingLinesMax - 1}` })
  await readAgain()
  expect(taken()).toMatchObject([{ level: 'warn', lines: 1_000 }])
  await readAgain()
  log.write('info', 'after')
  log.flush()
  expect(taken()).toMatchObject([{ message: 'after' }])
})
