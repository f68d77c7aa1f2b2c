import { expect, test } from 'bun:test'
import { advance, standingClock } from '../../test/support/clock.ts'
import { createStream } from '../../test/support/stream.ts'
import { readJsonBody } from './body.ts'
import { operations } from './operations.ts'
import { Refusal } from './response.ts'

const mergePatch = 'application/merge-patch+json'
type Body = string | Uint8Array<ArrayBuffer> | ReadableStream | null
const createRequest = (body: Body, headers: Record<string, string> = {}) =>
  new Request('http://a/v1/pets', { method: 'POST', body, headers })

const outcome = (request: Request): Promise<unknown> =>
  readJsonBody(request, operations[request.method === 'PATCH' ? 'updatePet' : 'createPet'].body).catch(error => error)
const read = async (body: Body, headers: Record<string, string> = {}) => {
  const result = await outcome(createRequest(body, headers))
  return result instanceof Refusal ? result.code : result
}
/** With its length, as most clients send it. */
const readSized = (body: string, headers: Record<string, string> = {}) =>
  read(body, { 'content-length': String(Buffer.byteLength(body)), 'content-type': '', ...headers })

const max = 64 * 1024
test('a JSON body may have up to 64 KiB, in one piece or in chunks', async () => {
  expect(await readSized('{}'.padEnd(max))).toEqual({})
  expect(await readSized('{}'.padEnd(max + 1))).toBe('body_too_large')
  expect(await read(createStream(['{}', max - 2]))).toEqual({})
  expect(await read(createStream(['{}', max - 2, 1]))).toBe('body_too_large')
  expect(await read(createStream(['{"a":', '[1', ']}']))).toEqual({ a: [1] })
})

test('a JSON body may have up to 4,096 pieces', async () => {
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
  ['any Content-Encoding', '{}', { 'content-encoding': 'identity' }, 'unsupported_content_encoding'],
  ['invalid UTF-8', new Uint8Array([0x22, 0xff, 0x22]), { 'content-type': '' }, 'invalid_json'],
  ['invalid JSON', createStream(['{']), {}, 'invalid_json'],
])('a JSON body with %s is refused with the first problem', async (_what, body, headers, code) => {
  expect(await read(body, headers)).toBe(code)
})

const refused = { code: 'unsupported_media_type', headers: { Accept: 'application/json' } }
const patch = { code: 'unsupported_media_type', headers: { 'Accept-Patch': `application/json, ${mergePatch}` } }
test.each<[string, string, object]>([
  ['POST', 'application/json', [5]],
  ['POST', ' Application/JSON ; charset=utf-8', [5]],
  ['POST', 'xapplication/json', refused],
  ['POST', 'application/json;a=b, text/plain', refused],
  ['POST', 'application/problem+json', refused],
  ['POST', mergePatch, refused],
  ['POST', 'x'.repeat(12_000), { ...refused, message: expect.stringMatching(/^.{1,300}$/) }],
  ['PATCH', `${mergePatch};charset=utf-8`, [5]],
  ['PATCH', 'application/json', [5]],
  ['PATCH', 'application/json-patch+json', patch],
])(
  '%#: a JSON body of a %s may have the type "%s", or is refused with the accepted ones',
  async (method, type, expected) => {
    const headers = { 'content-type': type }
    expect(await outcome(new Request('http://a/', { method, body: '[5]', headers }))).toMatchObject(expected)
  },
)

test('a JSON body that is not JSON is refused with the position of the mistake', async () => {
  const message = expect.stringMatching(/^The body is not valid JSON: .+ at line 3, column 1$/)
  expect(await outcome(createRequest('{\n  "name": "Rex",\n}', { 'content-type': '' }))).toMatchObject({ message })
})

test('a JSON body that does not arrive within 10 s is refused, and its connection closes', async () => {
  using _ = standingClock()
  const reading = outcome(createRequest(createStream(['{'], 'stalls')))
  await advance(9_999)
  expect(Bun.peek.status(reading)).toBe('pending')
  await advance(1)
  expect(await reading).toMatchObject({ code: 'request_timeout', headers: { Connection: 'close' } })
})
