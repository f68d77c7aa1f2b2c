import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type CallInit, type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service[Symbol.asyncDispose]())

const post = (body: CallInit['body'], headers: Record<string, string> = {}) =>
  service.call('/v1/pets', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body }),
  })
const count = async () => (await service.stores.pets.list({ limit: 100 })).pets.length

/** Refused with this status and code, and nothing was kept. */
async function expectRefused(
  answer: () => ReturnType<typeof post>,
  status: number,
  code: string,
): Promise<string> {
  const before = await count()
  const { status: got, json } = await answer()
  expect({ status: got, code: json.code }).toEqual({ status, code })
  expect(await count()).toBe(before)
  return json.message
}

describe('POST /v1/pets', () => {
  test('adds an animal and says where it is', async () => {
    const { status, text, headers } = await post('{"name":"Rex","categoryId":7,"status":"available"}')
    expect(status).toBe(201)
    const location = headers.get('location') ?? ''
    expect(location).toMatch(/^\/v1\/pets\/\d+$/)
    expect(text).toBe(`{"id":${location.slice(9)},"name":"Rex","categoryId":7,"status":"available"}`)
    expect((await service.call(location)).text).toBe(text)
  })

  test('leaves the status out where none was given', async () => {
    const { json } = await post('{"name":"Rex","categoryId":7}')
    expect(Object.keys(json)).toEqual(['id', 'name', 'categoryId'])
  })

  test.each([
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['9007199254740993', '9007199254740993'],
    ['1.0', '1'],
    ['1e3', '1000'],
    ['-0', '0'],
    ['0.1e1', '1'],
    ['9007199254740993.0', '9007199254740993'],
    ['922337203685477580.7e1', '9223372036854775807'],
    ['100e-2', '1'],
  ])('keeps the categoryId %s exactly', async (sent, kept) => {
    const { status, text, headers } = await post(`{"name":"Big","categoryId":${sent}}`)
    expect(status).toBe(201)
    expect(text).toContain(`"categoryId":${kept}}`)
    const location = headers.get('location') ?? ''
    expect((await service.call(location)).text).toBe(text)
    const { text: list } = await service.call('/v1/pets?limit=100')
    expect(list).toContain(text)
  })

  test.each([
    '9223372036854775808',
    '-9223372036854775809',
    '1e400',
    '-1e400',
    '1e19',
    '1e-400',
    '1.5',
    '1.0000000000000000001',
    '123456789012345.000000000000001',
    '"1"',
    '""',
    'true',
    'null',
    '[]',
    '[1]',
    '{}',
    '1e999999999',
  ])('refuses the categoryId %s', async sent => {
    const message = await expectRefused(
      () => post(`{"name":"Big","categoryId":${sent}}`),
      400,
      'invalid_request',
    )
    expect(message).toContain('categoryId')
    expect(message).toContain('9223372036854775807')
  })

  test.each([
    ['one character', 'R'],
    ['1,000 characters', 'x'.repeat(1000)],
    ['1,000 characters of two units each', '🐕'.repeat(1000)],
    ['spaces around', '  Rex  '],
    ['a line break', 'a\nb'],
    ['markup', '<script>alert(1)</script>'],
    ['right to left', '\u202eכלב'],
    ['quotes', '"\'`\\'],
  ])('keeps a name of %s as it was sent', async (_, name) => {
    const { status, json } = await post(JSON.stringify({ name, categoryId: 1 }))
    expect({ status, name: json.name }).toEqual({ status: 201, name })
  })

  test.each([
    ['empty', '""'],
    ['blank', '"   "'],
    ['blank by other white space', '"\\t\\n\\u00a0\\u3000\\ufeff"'],
    ['1,001 characters', JSON.stringify('x'.repeat(1001))],
    ['1,001 characters of two units each', JSON.stringify('🐕'.repeat(1001))],
    ['with U+0000', '"Rex\\u0000"'],
    ['with a lone high surrogate', '"Rex \\ud83d"'],
    ['with a lone low surrogate', '"\\udc15 Rex"'],
    ['with surrogates the wrong way round', '"\\udc15\\ud83d"'],
    ['a number', '7'],
    ['null', 'null'],
    ['a list', '["Rex"]'],
    ['an object', '{"first":"Rex"}'],
  ])('refuses a name that is %s', async (_, name) => {
    const message = await expectRefused(() => post(`{"name":${name},"categoryId":1}`), 400, 'invalid_request')
    expect(message).toStartWith('Cannot read name ')
    expect(message.length).toBeLessThan(300)
  })

  test.each(['"lost"', '""', '"AVAILABLE"', 'null', '1', 'true', '["sold"]'])(
    'refuses the status %s',
    async status => {
      const body = `{"name":"Rex","categoryId":1,"status":${status}}`
      const message = await expectRefused(() => post(body), 400, 'invalid_request')
      expect(message).toContain('one of available, pending, sold')
    },
  )

  test('stays short whatever was sent', async () => {
    const many = JSON.stringify(Object.fromEntries(Array.from({ length: 6_000 }, (_, i) => [`p${i}`, 1])))
    const answer = await post(many, { prefer: 'handling=strict' })
    expect([answer.status, answer.text.length < 3_000]).toEqual([400, true])
    expect(answer.json.message).toContain('and 5980 more')
    const typed = await post('{}', { 'content-type': 'x'.repeat(12_000) })
    expect([typed.status, typed.text.length < 300]).toEqual([415, true])
  })

  test('names every problem of the animal, not just the first', async () => {
    const message = await expectRefused(
      () => post('{"categoryId":"1","status":"lost"}'),
      400,
      'invalid_request',
    )
    expect(message).toContain('name is missing')
    expect(message).toContain('categoryId "1"')
    expect(message).toContain('status "lost"')
  })

  test.each(['{}', '{"name":"Rex"}', '{"categoryId":1}', '{"__proto__":{"name":"Rex","categoryId":1}}'])(
    'refuses %s: what is required is missing',
    async body => {
      expect(await expectRefused(() => post(body), 400, 'invalid_request')).toContain('is missing')
    },
  )

  test.each(['[]', '[{"name":"Rex","categoryId":1}]', 'null', '"Rex"', '1', 'true', '12345678901234567890'])(
    'refuses %s: not an object',
    async body => {
      expect(await expectRefused(() => post(body), 400, 'invalid_request')).toContain('the body')
    },
  )

  test.each([
    ['a missing bracket', '{"name":"Rex","categoryId":1'],
    ['a trailing comma', '{"name":"Rex","categoryId":1,}'],
    ['single quotes', "{'name':'Rex'}"],
    ['a comment', '{/* */"name":"Rex","categoryId":1}'],
    ['NaN', '{"name":"Rex","categoryId":NaN}'],
    ['a raw NUL', '{"name":"Rex\0","categoryId":1}'],
    ['two values', '{} {}'],
    ['white space alone', '   '],
    ['65 levels', `{"name":"Rex","categoryId":1,"x":${'['.repeat(64)}${']'.repeat(64)}}`],
    ['30,000 levels', `${'['.repeat(30_000)}${']'.repeat(30_000)}`],
    ['30,000 levels and a long number', `${'['.repeat(30_000)}12345678901234567890${']'.repeat(30_000)}`],
    ['30,000 opened levels', '{"a":'.repeat(10_000)],
  ])('refuses a body with %s as JSON', async (_, body) => {
    await expectRefused(() => post(body), 400, 'invalid_json')
  })

  test.each([
    ['a stray byte', [0xff]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['a surrogate in UTF-8', [0xed, 0xa0, 0x80]],
    ['a cut sequence', [0xe2, 0x82]],
    ['Latin-1', [0x5a, 0x6f, 0xeb]],
  ])('refuses %s: not UTF-8', async (_, bytes) => {
    const body = Buffer.concat([
      Buffer.from('{"name":"'),
      Buffer.from(bytes),
      Buffer.from('","categoryId":1}'),
    ])
    expect(await expectRefused(() => post(new Uint8Array(body)), 400, 'invalid_json')).toContain('UTF-8')
  })

  test('refuses an empty body, whatever its type', async () => {
    await expectRefused(() => post(undefined), 400, 'missing_body')
    await expectRefused(() => post('', { 'content-type': 'text/plain' }), 400, 'missing_body')
    await expectRefused(() => post(new ReadableStream({ start: c => c.close() })), 400, 'missing_body')
  })

  test('ignores properties that an animal does not have, its id among them', async () => {
    const { status, json } = await post(
      '{"id":99999,"name":"Rex","categoryId":1,"colour":"brown","__proto__":{"x":1}}',
    )
    expect(status).toBe(201)
    expect(json.id).not.toBe(99999)
    expect(Object.keys(json)).toEqual(['id', 'name', 'categoryId'])
  })
})

describe('Prefer: handling=strict', () => {
  const strict = { prefer: 'handling=strict' }

  test('refuses unknown properties, and names them', async () => {
    const body = '{"id":1,"name":"Rex","categoryId":1,"colour":"brown"}'
    const message = await expectRefused(() => post(body, strict), 400, 'invalid_request')
    expect(message).toContain('property "id"')
    expect(message).toContain('property "colour"')
  })

  test.each(['/v1/pets?offset=1', '/v1/pets/1?verbose=1'])(
    'refuses the unknown parameter of %s',
    async path => {
      const { status, json, headers } = await service.call(path, { headers: strict })
      expect({ status, code: json.code }).toEqual({ status: 400, code: 'invalid_request' })
      expect(json.message).toMatch(/parameter "(offset|verbose)"/)
      expect(headers.get('preference-applied')).toBe('handling=strict')
    },
  )

  test('refuses an unknown parameter of POST', async () => {
    const answer = () =>
      service.call('/v1/pets?dry=1', {
        method: 'POST',
        body: '{"name":"Rex","categoryId":1}',
        headers: strict,
      })
    expect(await expectRefused(answer, 400, 'invalid_request')).toContain('parameter "dry"')
  })

  test('accepts what is known, and says that it looked', async () => {
    const created = await post('{"name":"Rex","categoryId":1}', strict)
    expect([created.status, created.headers.get('preference-applied')]).toEqual([201, 'handling=strict'])
    const listed = await service.call('/v1/pets?limit=1&status=sold', {
      headers: { prefer: 'wait=5, Handling="strict"' },
    })
    expect([listed.status, listed.headers.get('preference-applied')]).toEqual([200, 'handling=strict'])
  })

  test('is not what other preferences mean', async () => {
    for (const prefer of [
      'handling=lenient',
      'strict',
      'x-handling=strict',
      'handling=lenient, handling=strict',
    ]) {
      const { status, headers } = await service.call('/v1/pets?offset=1', { headers: { prefer } })
      expect([status, headers.get('preference-applied')]).toEqual([200, null])
    }
  })
})

describe('the media type of POST /v1/pets', () => {
  const body = '{"name":"Rex","categoryId":1}'

  test.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=x',
    'application/json ; a=b; c="d"',
  ])('may be %s', async type => {
    expect((await post(body, { 'content-type': type })).status).toBe(201)
  })

  test('may be left out', async () => {
    const { status } = await service.call('/v1/pets', {
      method: 'POST',
      body: new TextEncoder().encode(body),
    })
    expect(status).toBe(201)
  })

  test.each([
    'text/plain',
    'application/jsonp',
    'application/json5',
    'application/problem+json',
    'text/json',
    '*/*',
    'application/json, text/plain',
    'application/x-www-form-urlencoded',
  ])('may not be %s', async type => {
    const message = await expectRefused(
      () => post(body, { 'content-type': type }),
      415,
      'unsupported_media_type',
    )
    expect(message).toContain('application/json')
  })

  test.each(['gzip', 'identity', 'br', 'x'])('leaves no room for Content-Encoding "%s"', async encoding => {
    await expectRefused(
      () => post(body, { 'content-encoding': encoding }),
      415,
      'unsupported_content_encoding',
    )
  })

  test('is judged before the size', async () => {
    await expectRefused(
      () => post('x'.repeat(70_000), { 'content-type': 'text/plain' }),
      415,
      'unsupported_media_type',
    )
  })
})

describe('the size of a body', () => {
  /** A body of exactly so many bytes: a valid animal and white space. */
  const sized = (bytes: number) => '{"name":"Rex","categoryId":1}'.padEnd(bytes)
  const streamed = (bytes: number) =>
    new ReadableStream({
      start(controller) {
        const text = new TextEncoder().encode(sized(bytes))
        for (let at = 0; at < text.length; at += 10_000) controller.enqueue(text.slice(at, at + 10_000))
        controller.close()
      },
    })

  test('may be 65,536 bytes, with and without a length', async () => {
    expect((await post(sized(65_536))).status).toBe(201)
    expect((await post(streamed(65_536))).status).toBe(201)
  })

  test.each([65_537, 5_000_000])('may not be %p bytes, with and without a length', async bytes => {
    const message = await expectRefused(() => post(sized(bytes)), 413, 'body_too_large')
    expect(message).toContain('65536 bytes')
    await expectRefused(() => post(streamed(bytes)), 413, 'body_too_large')
    expect((await post(sized(100))).status).toBe(201)
  })
})

test('when every id is given, a creation is 503 ids_exhausted without Retry-After, and a replay still works', async () => {
  await using full = await startService()
  const post = (name: string, key?: string) =>
    full.call('/v1/pets', {
      method: 'POST',
      body: JSON.stringify({ name, categoryId: 1 }),
      ...(key && { headers: { 'idempotency-key': key } }),
    })
  await full.database.setLastId(2n ** 63n - 4n)
  const [first, second] = [await post('Rex', 'first'), await post('Tom')]
  expect([first.status, second.status]).toEqual([201, 201])
  expect(first.text).toContain('"id":9223372036854775805')

  // One id is left for three at once: it is given, and only once.
  const last = await Promise.all([post('Ada'), post('Bob'), post('Cid')])
  expect(last.map(({ status }) => status).sort()).toEqual([201, 503, 503])
  for (const refused of [
    last.find(({ status }) => status === 503),
    await post('Dan'),
    await post('Eve', 'eve'),
  ]) {
    expect(refused?.json).toMatchObject({ code: 'ids_exhausted', status: 503 })
    expect(refused?.headers.get('retry-after')).toBeNull()
  }
  expect((await post('Rex', 'first')).headers.get('idempotency-replayed')).toBe('true')
  expect((await full.call('/v1/pets')).json).toHaveLength(3)
})
