import { describe, expect, test } from 'bun:test'
import { createLog, unwrittenLinesMax } from './log.ts'

const fields = {
  requestId: 'r-1',
  method: 'GET',
  operation: 'listPets',
  status: 200,
  durationMs: 0.4,
  key: 'till',
}

function lines(options: { level?: 'debug' | 'info' | 'warn' | 'error'; isTerminal?: boolean } = {}) {
  const written: string[] = []
  const log = createLog({
    level: 'info',
    isTerminal: false,
    ...options,
    write: text => void written.push(text),
  })
  return { log, written }
}

describe('without a terminal', () => {
  test('a line is a JSON object with time, level and message, and leaves out what is undefined', () => {
    const { log, written } = lines()
    log.write('info', 'request', { ...fields, path: undefined })
    log.flush()
    const line = JSON.parse(written.join(''))
    expect(line).toEqual({
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      level: 'info',
      message: 'request',
      ...fields,
    })
  })

  test.each(['"quoted" \\ text', 'one\ntwo', 'Zoë 🐕', '\u0000\u001b[31m', '', '\ud800'])(
    'a field that is %j is read back as it was',
    value => {
      const { log, written } = lines()
      log.write('error', value, { key: value })
      expect(JSON.parse(written.join(''))).toMatchObject({ message: value, key: value })
    },
  )

  test('a line break in a field stays inside its line', () => {
    const { log, written } = lines()
    log.write('error', 'fault', { cause: 'one\ntwo' })
    expect(written.join('').match(/\n/g)).toHaveLength(1)
  })
})

describe('on a terminal', () => {
  const plain = (text: string) => Bun.stripANSI(text)

  test('a request is one readable line', () => {
    const { log, written } = lines({ isTerminal: true })
    log.write('info', 'request', fields)
    log.flush()
    expect(plain(written.join(''))).toMatch(/^\d\d:\d\d:\d\d 200 GET listPets 0.4 ms till\n$/)
    expect(written.join('')).toContain('\u001b[32m200')
  })

  test('a refused request shows its id, to find it by', () => {
    const { log, written } = lines({ isTerminal: true })
    log.write('info', 'request', { ...fields, operation: undefined, path: '/v1/x', status: 404 })
    log.flush()
    expect(plain(written.join(''))).toMatch(/404 GET \/v1\/x 0.4 ms till r-1\n$/)
  })

  test('any other line names its fields', () => {
    const { log, written } = lines({ isTerminal: true })
    log.write('error', 'fault', { requestId: 'r-1', cause: 'Error: x' })
    expect(plain(written.join(''))).toMatch(/^\d\d:\d\d:\d\d error fault requestId=r-1 cause=Error: x\n$/)
  })
})

describe('levels', () => {
  test.each([
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['info', ['info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
  ] as const)('%s shows %p', (level, shown) => {
    const { log, written } = lines({ level })
    for (const each of ['debug', 'info', 'warn', 'error'] as const) {
      expect(log.isOn(each)).toBe((shown as readonly string[]).includes(each))
      log.write(each, each)
    }
    log.flush()
    const levels = written
      .join('')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).level)
    expect(levels).toEqual([...shown])
  })
})

describe('lines are written together', () => {
  test('after a moment, by themselves', async () => {
    const { log, written } = lines()
    log.write('info', 'one')
    log.write('info', 'two')
    expect(written).toEqual([])
    await Bun.sleep(200)
    expect(written).toHaveLength(1)
  })

  test('but an error at once, with what came before it', () => {
    const { log, written } = lines()
    log.write('info', 'before')
    log.write('error', 'broken')
    expect(written).toHaveLength(1)
    expect(written[0]).toContain('before')
  })

  test('and never more than some 64 KB at a time', () => {
    const { log, written } = lines()
    for (let i = 0; i < 3_000; i++) log.write('info', 'x'.repeat(50))
    expect(written.length).toBeGreaterThan(2)
  })
})

describe('where nobody reads', () => {
  const request = (index: number) => ({ requestId: `r-${index}` })

  test('so many lines wait, the others are lost, and how many is told when somebody reads again', async () => {
    const taken: string[] = []
    let reads = Promise.withResolvers<void>()
    const log = createLog({
      level: 'info',
      isTerminal: false,
      write(text) {
        taken.push(text)
        return reads.promise
      },
    })
    const lost = 1_000
    for (let i = 0; i < unwrittenLinesMax + lost; i++) log.write('info', 'request', request(i))
    log.flush()
    const waiting = taken.join('').trimEnd().split('\n')
    expect(waiting).toHaveLength(unwrittenLinesMax)
    expect(JSON.parse(waiting.at(-1) ?? '')).toMatchObject(request(unwrittenLinesMax - 1))

    reads.resolve()
    reads = Promise.withResolvers<void>()
    await Bun.sleep(0)
    taken.length = 0
    log.write('info', 'request', request(-1))
    log.flush()
    const [loss, next] = taken.join('').trimEnd().split('\n')
    expect(JSON.parse(loss ?? '')).toMatchObject({ level: 'warn', lines: lost })
    expect(JSON.parse(next ?? '')).toMatchObject(request(-1))
  })
})
