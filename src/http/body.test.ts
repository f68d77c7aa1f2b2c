import { describe, expect, test } from 'bun:test'
import { advance, standingClock } from '../../test/support/clock.ts'
import { createStream } from '../../test/support/stream.ts'
import { readJsonBody } from './body.ts'
import { operations } from './operations.ts'
import { Refusal } from './response.ts'

type Body = string | Uint8Array<ArrayBuffer> | ReadableStream | null
const createRequest = (body: Body, headers: Record<string, string> = {}) =>
  new Request('http://a/v1/pets', { method: 'POST', body, headers })

describe('a JSON body', () => {
  const outcome = async (request: Request): Promise<unknown> => {
    try {
      return await readJsonBody(request, operations[request.method === 'PATCH' ? 'updatePet' : 'createPet'].body)
    } catch (error) {
      return error
    }
  }
  const read = async (body: Body, headers: Record<string, string> = {}) => {
    const result = await outcome(createRequest(body, headers))
    return result instanceof Refusal ? result.code : result
  }
  /** With its length, as most clients send it. */
  const readSized = (body: string, headers: Record<string, string> = {}) =>
    read(body, { 'content-length': String(Buffer.byteLength(body)), 'content-type': '', ...headers })

  const max = 64 * 1024
  test('may have up to 64 KiB, in one piece or in chunks', async () => {
    expect(await readSized('{}'.padEnd(max))).toEqual({})
    expect(await readSized('{}'.padEnd(max + 1))).toBe('body_too_large')
    expect(await read(createStream(['{}', max - 2]))).toEqual({})
    expect(await read(createStream(['{}', max - 2, 1]))).toBe('body_too_large')
    expect(await read(createStream(['{"a":', '[1', ']}']))).toEqual({ a: [1] })
  })

  test('may have up to 4,096 pieces', async () => {
    expect(await read(createStream(['{}', ...Array(4_095).fill(1)]))).toEqual({})
    const refusal = await outcome(createRequest(createStream(['{}', ...Array(4_096).fill(1)])))
    expect(refusal).toMatchObject({ code: 'body_too_large', headers: { Connection: 'close' } })
  })

  const wrongType = { 'content-type': 'text/plain' }
  test.each<[string, Body, Record<string, string>, string]>([
    ['no body', null, wrongType, 'missing_body'],
    ['a length of 0', 'x', { ...wrongType, 'content-length': '0' }, 'missing_body'],
    ['no chunks', createStream([]), wrongType, 'missing_body'],
    ['another type and too many bytes', 'x', { ...wrongType, 'content-length': '70000' }, 'unsupported_media_type'],
    ['compression', createStream(['{}']), { 'content-encoding': 'gzip' }, 'unsupported_content_encoding'],
    ['invalid UTF-8', new Uint8Array([0x22, 0xff, 0x22]), { 'content-type': '' }, 'invalid_json'],
    ['invalid JSON', createStream(['{']), {}, 'invalid_json'],
  ])('with %s is refused with the first problem', async (_what, body, headers, code) => {
    expect(await read(body, headers)).toBe(code)
  })

  test.each<[string, unknown]>([
    ['application/json', {}],
    [' Application/JSON ; charset=utf-8', {}],
    ['xapplication/json', 'unsupported_media_type'],
    ['application/json, text/plain', 'unsupported_media_type'],
    ['application/problem+json', 'unsupported_media_type'],
  ])('of the type "%s" is read as %p', async (type, expected) => {
    expect(await readSized('{}', { 'content-type': type })).toEqual(expected)
  })

  test('of a change may be a merge patch, too, and a refusal names both types', async () => {
    const change = (type: string) =>
      outcome(new Request('http://a/', { method: 'PATCH', body: '{}', headers: { 'content-type': type } }))
    expect(await change('application/merge-patch+json;charset=utf-8')).toEqual({})
    expect(await change('application/json')).toEqual({})
    const headers = { 'Accept-Patch': 'application/json, application/merge-patch+json' }
    expect(await change('application/json-patch+json')).toMatchObject({ code: 'unsupported_media_type', headers })
    expect(await read('{}', { 'content-type': 'application/merge-patch+json' })).toBe('unsupported_media_type')
  })

  test.each([
    ['content-type', 'x'.repeat(12_000), { Accept: 'application/json' }],
    ['content-encoding', 'identity', { 'Accept-Encoding': 'identity' }],
  ])('with another %s is refused with what is accepted, in a short message', async (sent, value, headers) => {
    const message = expect.stringMatching(/^.{1,300}$/)
    expect(await outcome(createRequest('{}', { [sent]: value }))).toMatchObject({ headers, message })
  })

  test('that is not JSON is refused with the position of the mistake', async () => {
    const message = expect.stringMatching(/^The body is not valid JSON: .+ at line 3, column 1$/)
    expect(await outcome(createRequest('{\n  "name": "Rex",\n}', { 'content-type': '' }))).toMatchObject({ message })
  })

  test('that does not arrive within 10 s is refused, and its connection closes', async () => {
    using _ = standingClock()
    const reading = outcome(createRequest(createStream(['{'], 'stalls')))
    await advance(9_999)
    expect(Bun.peek.status(reading)).toBe('pending')
    await advance(1)
    expect(await reading).toMatchObject({ code: 'request_timeout', headers: { Connection: 'close' } })
  })
})
