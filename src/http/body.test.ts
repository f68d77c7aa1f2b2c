import { describe, expect, test } from 'bun:test'
import { discardBody, readJsonBody } from './body.ts'

type Body = string | Uint8Array<ArrayBuffer> | ReadableStream | null
type Chunk = string | number

/** A body in chunks: texts, or counts of spaces. It ends, stalls or fails after the last one. */
function streamOf(chunks: readonly Chunk[], end: 'ends' | 'stalls' | 'fails' = 'ends'): ReadableStream {
  const left = [...chunks]
  return new ReadableStream({
    async pull(controller) {
      const chunk = left.shift()
      if (chunk !== undefined) controller.enqueue(Buffer.from(typeof chunk === 'string' ? chunk : ' '.repeat(chunk)))
      else if (end === 'ends') controller.close()
      else if (end === 'fails') controller.error(new Error('The client closed the connection'))
      else await new Promise(() => {})
    },
  })
}

const requestOf = (body: Body, headers: Record<string, string> = {}) =>
  new Request('http://a/v1/pets', { method: 'POST', body, headers })

describe('a JSON body', () => {
  const read = async (body: Body, headers: Record<string, string> = {}, bodyMs = 60_000) => {
    const result = await readJsonBody(requestOf(body, headers), bodyMs)
    return result.ok ? result.value : JSON.parse(String(result.refusal.body)).code
  }
  const refusalOf = async (request: Request, bodyMs = 60_000) => {
    const result = await readJsonBody(request, bodyMs)
    return result.ok ? undefined : result.refusal
  }
  /** With its length, as most clients send it. */
  const readSized = (body: string, headers: Record<string, string> = {}) =>
    read(body, { 'content-length': String(Buffer.byteLength(body)), 'content-type': '', ...headers })

  const max = 64 * 1024
  test('may have up to 64 KiB, in one piece or in chunks', async () => {
    expect(await readSized('{}'.padEnd(max))).toEqual({})
    expect(await readSized('{}'.padEnd(max + 1))).toBe('body_too_large')
    expect(await read(streamOf(['{}', max - 2]))).toEqual({})
    expect(await read(streamOf(['{}', max - 2, 1]))).toBe('body_too_large')
    expect(await read(streamOf(['{"a":', '[1', ']}']))).toEqual({ a: [1] })
  })

  test('may have up to 4,096 pieces', async () => {
    expect(await read(streamOf(['{}', ...Array(4_095).fill(1)]))).toEqual({})
    const refusal = await refusalOf(requestOf(streamOf(['{}', ...Array(4_096).fill(1)])))
    expect([refusal?.status, refusal?.headers.get('connection')]).toEqual([413, 'close'])
  })

  const wrongType = { 'content-type': 'text/plain' }
  test.each<[string, Body, Record<string, string>, string]>([
    ['no body', null, wrongType, 'missing_body'],
    ['a length of 0', 'x', { ...wrongType, 'content-length': '0' }, 'missing_body'],
    ['no chunks', streamOf([]), wrongType, 'missing_body'],
    ['chunks of another type', streamOf(['{}']), wrongType, 'unsupported_media_type'],
    ['another type and too many bytes', 'x', { ...wrongType, 'content-length': '70000' }, 'unsupported_media_type'],
    ['compression', streamOf(['{}']), { 'content-encoding': 'gzip' }, 'unsupported_content_encoding'],
    ['invalid UTF-8', new Uint8Array([0x22, 0xff, 0x22]), { 'content-type': '' }, 'invalid_json'],
    ['invalid JSON', streamOf(['{']), {}, 'invalid_json'],
  ])('with %s is refused with the first problem', async (_what, body, headers, code) => {
    expect(await read(body, headers)).toBe(code)
  })

  test.each(['application/json', 'Application/JSON', ' application/json ; charset=utf-8', 'application/json;a="b"'])(
    'may have the type "%s"',
    async type => expect(await readSized('{}', { 'content-type': type })).toEqual({}),
  )

  test.each([
    ...['application/jsonp', 'xapplication/json', 'application/json, text/plain', 'text/json'],
    ...['application/problem+json', '*/*'],
  ])('may not have the type "%s"', async type => {
    expect(await readSized('{}', { 'content-type': type })).toBe('unsupported_media_type')
  })

  test.each([
    ['content-type', 'x'.repeat(12_000), 'accept', 'application/json'],
    ['content-encoding', 'identity', 'accept-encoding', 'identity'],
  ])('with another %s is refused shortly: %#', async (sent, value, accepts, expected) => {
    const refusal = await refusalOf(requestOf('{}', { [sent]: value }))
    expect([refusal?.headers.get(accepts), String(refusal?.body).length < 300]).toEqual([expected, true])
  })

  test('that is not JSON is refused with the position of the mistake', async () => {
    const refusal = await refusalOf(requestOf('{\n  "name": "Rex",\n}', { 'content-type': '' }))
    expect(JSON.parse(String(refusal?.body)).message).toMatch(/^The body is not valid JSON: .+ at line 3, column 1$/)
  })

  test('that does not arrive in time is refused, and its connection closes', async () => {
    const refusal = await refusalOf(requestOf(streamOf(['{'], 'stalls')), 10)
    expect([refusal?.status, refusal?.headers.get('connection')]).toEqual([408, 'close'])
  })
})

describe('the rest of a refused body', () => {
  const mebibyte = 1024 ** 2
  test.each<[string, ReadableStream | null, boolean, number]>([
    ['that ends', streamOf([1, 2]), true, 60_000],
    ['that is absent', null, true, 60_000],
    ['of 16 MiB', streamOf(Array(16).fill(mebibyte)), true, 60_000],
    ['of more than 16 MiB', streamOf([...Array(16).fill(mebibyte), 1]), false, 60_000],
    ['in 1,025 small pieces', streamOf(Array(1_025).fill(1)), true, 60_000],
    ['in more small pieces', streamOf(Array(1_030).fill(1)), false, 60_000],
    ['in 5,000 packets', streamOf(Array(5_000).fill(1_024)), true, 60_000],
    ['that stalls', streamOf([1], 'stalls'), false, 10],
    ['that breaks off', streamOf([1], 'fails'), false, 60_000],
  ])('%s is discarded to its end: %p', async (_what, body, ended, discardMs) => {
    expect(await discardBody(requestOf(body), discardMs, () => false)).toBe(ended)
  })

  test.each([
    ['1,030', streamOf(Array(1_030).fill(1)), true],
    ['endless', streamOf([...Array(1_030).fill(1), ...Array(10).fill(65_536)]), false],
  ])('in %s small pieces is discarded patiently, within bounds', async (_what, body, ended) => {
    expect(await discardBody(requestOf(body), 60_000, () => true)).toBe(ended)
  })

  test('that something else reads is left alone, and its connection has to be closed', async () => {
    const request = requestOf(streamOf([1]))
    request.body?.getReader()
    expect(await discardBody(request, 10, () => false)).toBe(false)
  })
})
