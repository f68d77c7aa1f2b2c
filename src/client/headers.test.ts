import { expect, test } from 'bun:test'
import { readDeprecation, readHeaders, readLinks, readRateLimit, readRetryAfter } from './headers.ts'

const url = 'http://127.0.0.1:8080/v1/pets?limit=2'
const at = (path: string) => `http://127.0.0.1:8080${path}`

test.each<[string | null, ...(readonly [rel: string, href: string])[]]>([
  ['</v1/pets?cursor=a>; rel="next"', ['next', at('/v1/pets?cursor=a')]],
  ['<?cursor=a>; REL = "NEXT"', ['next', at('/v1/pets?cursor=a')]],
  ['</a>; rel="next  last"', ['next', at('/a')], ['last', at('/a')]],
  ['</a>; rel="https://example.com/?a=b"', ['https://example.com/?a=b', at('/a')]],
  ['</a>; rel="prev", </b>; rel="next"', ['prev', at('/a')], ['next', at('/b')]],
  ['</a,b>; title="x, <y>; rel=\\"prev\\""; rel="next"', ['next', at('/a,b')]],
  ['</a>; title="; rel=prev"; crossorigin; rel=next; rel=last', ['next', at('/a')]],
  ['<http://[>; rel="next", </b>; rel="last"', ['last', at('/b')]],
  ['</a>; rel=next; title="x\\', ['next', at('/a')]],
  ['</a>; rel=next, </b>; title="x; rel=prev', ['next', at('/a')]],
  ['<</a>; rel=next', ['next', at('/a')]],
  ...[
    ...['</a>', '</a>; rel=""', '</a>; title=rel=next', '</a>; rel, next', '</a>; rel =; title=next'],
    ...['</a>; rel; rel=next', '</a>, x; rel=next', 'rel="next"', '<', '', null],
  ].map((header): [string | null] => [header]),
])('Link: %s', (header, ...links) => {
  expect(readLinks(header, url)).toEqual(links.map(([rel, href]) => ({ rel, href })))
})

test.each(['<', '<ab', '</a>"\\"', '"\\"', ';a="\\"', ';a="', '\\', ' ', ';,='])(
  'a long Link header of %j is read in linear time',
  part => {
    // In quadratic time this would take minutes, which is longer than a test may take.
    const [first] = readLinks(`</first>; rel=next; ${part.repeat(500_000 / part.length)}`, url)
    expect(first).toEqual({ rel: 'next', href: at('/first') })
  },
)

const deprecation = new Date('2026-11-15T00:00:00Z')
const sunset = new Date('2030-12-05T00:00:00Z')

test.each<[Record<string, string>, object | undefined]>([
  [
    { deprecation: '@1794700800', sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' },
    { deprecation, sunset },
  ],
  [{ deprecation: 'Sun, 15 Nov 2026 00:00:00 GMT' }, { deprecation }],
  [{ deprecation: 'true' }, {}],
  [{ deprecation: '@1 soon' }, {}],
  [{ deprecation: 'soon @1' }, {}],
  [{ deprecation: '@-1' }, { deprecation: new Date(-1_000) }],
  [{ deprecation: '@999999999999' }, { deprecation: new Date(999_999_999_999_000) }],
  [{ sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' }, { sunset }],
  [{ sunset: 'some day in 2030' }, {}],
  [
    { deprecation: '@1794700800', link: '</docs>; rel="deprecation"' },
    { deprecation, links: [{ rel: 'deprecation', href: at('/docs') }] },
  ],
  [{ link: '</a>; rel="deprecation"' }, undefined],
])('the headers %j announce the deprecation %p', (headers, notice) => {
  const expected = notice && { operation: 'getPet', links: [], ...notice }
  expect(readDeprecation('getPet', new Headers(headers), url)).toStrictEqual(expected as never)
})

const ownHeaders = 'authorization Accept content-type Idempotency-Key content-length Host connection expect'.split(' ')
const invalidValues = ['secret\r\nx: y', 'secret\u0000', 'secret ä', '犬 secret', 7, null, undefined, ['secret']]

test.each([
  ...ownHeaders.flatMap(name => [{ [name]: 'secret' }, new Headers({ [name]: 'secret' })]),
  ...invalidValues.map(value => ({ 'x-a': value })),
  ...['', 'a b', 'a:', 'ä', 'a\n'].map(name => ({ [name]: 'secret' })),
  ...['x-a: secret', 7, null],
])('%j cannot be headers of a request, and the TypeError shows no secret', headers => {
  const read = () => readHeaders(headers as never)
  expect(read).toThrow(TypeError)
  expect(read).toThrow(/^headers(\[".*"\])? is .*: \w/)
  expect(read).not.toThrow('secret')
})

test('Retry-After is a number of seconds, or a date', () => {
  const read = (header: string | null) => readRetryAfter(header, new Date('2026-11-15T00:00:00Z'))
  const headers = ['0', '120', 'Sun, 15 Nov 2026 00:00:30 GMT', 'Sat, 14 Nov 2026 00:00:00 GMT']
  expect(headers.map(read)).toEqual([0, 120, 30, 0])
  for (const header of [null, 'soon', '5 seconds', 'in 5', '']) expect(read(header)).toBeUndefined()
})

const policy = '"default";q=100;w=60'
const state = '"default";r=42;t=7'
const rateLimit = { limit: 100, windowSeconds: 60, remaining: 42, resetSeconds: 7 }

test.each<[string | null, string | null, ...(typeof rateLimit)[]]>([
  [policy, state, rateLimit],
  ['"a"; w=60; q=100; x="y"', '"a"; t=7; r=42', rateLimit],
  ['"a";qu="req";q=100;w=60', '"a";x=";r=1, ";r=42;t=7', rateLimit],
  ['"";q=100;w=60, "b";q=1;w=1', '"";r=42;t=7, "b";r=1;t=1', rateLimit],
  [null, null],
  [policy, null],
  [null, state],
  [policy, '"default";r=42'],
  [policy, '"default";t=7, "b";r=42'],
  [policy, '"default";r=-1;t=7'],
  [policy, '"default";r=4.2;t=7'],
  [policy, '"r=42;t=7"'],
  [policy, 'limit=100, remaining=42, reset=7'],
  ['"default";q=;w=60', state],
  ['100', '42'],
])('RateLimit-Policy: %s and RateLimit: %s are the rate limit %p', (policy, state, ...[limit]) => {
  const headers = Object.entries({ 'ratelimit-policy': policy, ratelimit: state }).filter(([, value]) => value !== null)
  expect(readRateLimit(new Headers(headers as [string, string][]))).toEqual(limit as never)
})
