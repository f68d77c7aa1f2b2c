import { afterEach, beforeEach, describe, expect, type Mock, spyOn, test } from 'bun:test'
import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import { Histogram } from '../histogram.ts'
import type { Log, LogFields, LogLevel } from '../log.ts'
import type { KeyStore } from '../store.ts'
import { KeyUsage } from './auth.ts'
import { Metrics, RequestObserver } from './metrics.ts'

let clock: Mock<typeof performance.now>
beforeEach(() => {
  clock = spyOn(performance, 'now').mockReturnValue(10_000)
})
afterEach(() => {
  clock.mockRestore()
})

const noUsage = new KeyUsage({} as KeyStore)
const samplesOf = (text: string) => text.split('\n').filter(line => line !== '' && !line.startsWith('#'))

describe('the metrics', () => {
  test('are text with a HELP and a TYPE for each family, and a line for each sample', () => {
    const text = new Metrics().render(noUsage, undefined)
    expect(text).toContain(
      [
        '# HELP petstore_pets_created_total Animals added.',
        '# TYPE petstore_pets_created_total counter',
        'petstore_pets_created_total 0',
        '# HELP petstore_page_cache_hits_total ',
      ].join('\n'),
    )
    expect(text).toEndWith('\n')
    for (const sample of samplesOf(text)) {
      const name = /^\w+/.exec(sample)?.[0]
      expect(text).toContain(`# HELP ${name} `)
      expect(text).toMatch(new RegExp(`^# TYPE ${name} (counter|gauge)$`, 'm'))
    }
    expect(text).not.toContain('petstore_commit_writes')
  })

  test('count requests by operation and status, with their durations', () => {
    const metrics = new Metrics()
    for (let i = 0; i < 4; i++) metrics.requestBegan()
    metrics.requestEnded('listPets', 200, 0.001)
    metrics.requestEnded('listPets', 200, 20)
    metrics.requestEnded(undefined, 404, 0.2)
    metrics.petCreated()
    metrics.pageServed(true)
    metrics.pageServed(true)
    metrics.pageServed(false)
    const samples = samplesOf(metrics.render(noUsage, undefined))
    expect(samples).toEqual(
      expect.arrayContaining([
        'petstore_http_requests_total{operation="listPets",status="200"} 2',
        'petstore_http_requests_total{operation="none",status="404"} 1',
        'petstore_http_request_duration_seconds_bucket{operation="listPets",le="0.0005"} 0',
        'petstore_http_request_duration_seconds_bucket{operation="listPets",le="0.001"} 1',
        'petstore_http_request_duration_seconds_bucket{operation="listPets",le="10"} 1',
        'petstore_http_request_duration_seconds_bucket{operation="listPets",le="+Inf"} 2',
        'petstore_http_request_duration_seconds_sum{operation="listPets"} 20.001',
        'petstore_http_request_duration_seconds_count{operation="listPets"} 2',
        'petstore_http_requests_in_flight 1',
        'petstore_pets_created_total 1',
        'petstore_page_cache_hits_total 2',
        'petstore_page_cache_misses_total 1',
      ]),
    )
  })

  test('show the writes of the store', () => {
    const commitSizes = new Histogram([1, 2])
    commitSizes.observe(2)
    const samples = samplesOf(new Metrics().render(noUsage, { writesWaiting: 3, commitSizes }))
    expect(samples).toEqual(
      expect.arrayContaining(['petstore_writes_waiting 3', 'petstore_commit_writes_bucket{le="2"} 1']),
    )
  })

  test('show at most 1,000 keys that call deprecated operations, with escaped names', () => {
    const usage = new KeyUsage({} as KeyStore)
    for (let i = 0; i < 1_001; i++) {
      const caller = { keyName: `a"b\\c\nd ${i}`, permission: 'read-only', scope: String(i) } as const
      usage.recordUse(caller, undefined)
      usage.recordDeprecatedCall(caller)
    }
    const samples = samplesOf(new Metrics().render(usage, undefined))
    expect(samples).toContain(
      'petstore_deprecated_requests_total{operation="getPet",key="a\\"b\\\\c\\nd 0"} 1',
    )
    expect(samples.filter(line => line.startsWith('petstore_deprecated_requests_total'))).toHaveLength(1_000)
    const last = samples.find(line => line.startsWith('petstore_deprecated_last_request_timestamp_seconds'))
    expect(Math.abs(Number(last?.split(' ').at(-1)) - Date.now() / 1_000)).toBeLessThan(60)
  })
})

describe('the log', () => {
  let lines: { level: LogLevel; message: string; fields: LogFields }[]
  let level: LogLevel
  const log: Log = {
    isOn: asked => level === 'info' || asked !== 'info',
    write: (level, message, fields = {}) => lines.push({ level, message, fields }),
    request: (level, fields) => lines.push({ level, message: 'request', fields }),
  }
  let observer: RequestObserver
  beforeEach(() => {
    lines = []
    level = 'info'
    observer = new RequestObserver({ log, metrics: new Metrics(), unavailableEveryMs: 1_000 })
  })
  const begin = (path: string, headers: Record<string, string> = {}) =>
    observer.begin(new Request(`http://a${path}`, { headers: { 'x-request-id': 'id-1', ...headers } }))

  test('has a line for each request', () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const context = begin('/v1/pets', { traceparent })
    context.caller = { keyName: 'till', permission: 'read-only', scope: '' }
    context.operationId = 'listPets'
    clock.mockReturnValue(10_001.23456)
    observer.end(context, 200)
    observer.end(begin('/v1/nothing?secret', { traceparent: 'nonsense' }), 404)
    expect(lines.map(({ fields }) => fields)).toEqual([
      {
        requestId: 'id-1',
        method: 'GET',
        operation: 'listPets',
        path: undefined,
        status: 200,
        durationMs: 1.235,
        key: 'till',
        traceparent,
      },
      {
        requestId: 'id-1',
        method: 'GET',
        operation: undefined,
        path: '/v1/nothing',
        status: 404,
        durationMs: 0,
        key: undefined,
        traceparent: undefined,
      },
    ])
  })

  test.each<[number, LogLevel]>([
    [200, 'info'],
    [404, 'info'],
    [499, 'info'],
    [500, 'error'],
    [503, 'warn'],
  ])('shows the status %p at the level %s', (status, expected) => {
    observer.end(begin('/'), status)
    level = 'warn'
    observer.end(begin('/'), status)
    expect(lines.map(({ level }) => level)).toEqual(expected === 'info' ? ['info'] : [expected, expected])
  })

  test.each<[string, Error]>([
    ['store unavailable', new StoreUnavailable('The disk is full')],
    ['ids exhausted', new IdsExhausted('No id is left')],
  ])('has one line a second while requests fail: %s', (message, cause) => {
    const failAt = (ms: number) => {
      clock.mockReturnValue(ms)
      observer.failed(begin('/v1/pets'), cause)
    }
    failAt(10_000)
    for (let i = 0; i < 30; i++) failAt(10_999)
    failAt(11_000)
    failAt(11_001)
    const line = { level: 'error', message, fields: { requestId: 'id-1', cause: cause.message } }
    expect(lines).toEqual([
      { ...line, fields: { ...line.fields, requests: 1 } },
      { ...line, fields: { ...line.fields, requests: 31 } },
    ] as typeof lines)
  })

  test.each<[unknown, string]>([
    [new TypeError('oops'), 'metrics.test.ts'],
    [Object.assign(new Error('bare'), { stack: '' }), 'Error: bare'],
    ['a text', 'a text'],
  ])('has the cause of an unexpected failure: %#', (cause, shown) => {
    observer.failed(begin('/v1/pets'), cause)
    const fields = { requestId: 'id-1', cause: expect.stringContaining(shown) }
    expect(lines).toEqual([{ level: 'error', message: 'internal error', fields }])
  })

  test('has no line for a damaged store, which logs that itself', () => {
    observer.failed(begin('/v1/pets'), new StoreDamaged('The file is damaged'))
    expect(lines).toEqual([])
  })
})
