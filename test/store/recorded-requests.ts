/** Who asks: a key that may do everything, another such, and so on; null for nobody. */
export type Caller = 'clerk' | 'other clerk' | 'reader' | 'revoked' | 'expired' | 'stranger' | null

/** A request as data: it knows nothing of the store behind the service. */
export interface RecordedRequest {
  readonly method?: string
  /** `{cursor}` stands for the cursor of the last `Link` that there was. */
  readonly path: string
  readonly as?: Caller
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer>
  /** Goes on from page to page by the `Link` of each, to the last. */
  readonly walk?: true
}

const strict = { prefer: 'handling=strict' }
const get = (path: string, more: Partial<RecordedRequest> = {}): RecordedRequest => ({ path, ...more })
const post = (body: RecordedRequest['body'], more: Partial<RecordedRequest> = {}): RecordedRequest => ({
  method: 'POST',
  path: '/v1/pets',
  ...(body !== undefined && { body }),
  ...more,
})
const animal = (name: string, categoryId = '1', status?: string) =>
  post(`{"name":${JSON.stringify(name)},"categoryId":${categoryId}${status ? `,"status":"${status}"` : ''}}`)
const once = (key: string, body: string, more: Partial<RecordedRequest> = {}) =>
  post(body, { headers: { 'idempotency-key': key }, ...more })
const rex = '{"name":"Rex","categoryId":9223372036854775807}'
const statuses = ['available', 'pending', 'sold', undefined]

/** Nothing is there yet. */
const empty = [
  get('/v1/pets'),
  get('/v1/pets?status=sold&limit=1'),
  get('/v1/pets/1'),
  get('/v1/pets/9223372036854775807'),
  get('/v1/pets', { method: 'HEAD' }),
]

const integers = [
  '9223372036854775807',
  '-9223372036854775808',
  '9007199254740993',
  '-9007199254740993',
  '9223372036854775807.0',
  '922337203685477580.7e1',
  '0',
  '-0',
  '1e3',
].map(categoryId => animal('Digits', categoryId, 'sold'))

const integersRefused = [
  '9223372036854775808',
  '-9223372036854775809',
  '1e19',
  '1.5',
  '1e400',
  '"1"',
  'null',
  'true',
].map(categoryId => animal('Digits', categoryId))

const names = [
  '  Rex ',
  'Zoë',
  'Zoe\u0308',
  'كلب',
  '\u202eכלב',
  '🐕‍🦺',
  '𝒜𝓃𝒾𝓂𝒶𝓁',
  "Robert'); DROP TABLE pets;--",
  '%_\\"\'`$1 {a,b} NULL',
  'NULL',
  '{}',
  '"quoted","list"',
  'a\nb\tc\r\u0001\u007f',
  '\u2028\ufeff x',
  '\uffff\u{10ffff}',
  'ß'.repeat(1_000),
  '🐕'.repeat(1_000),
].map((name, index) => animal(name, String(index), statuses[index % 4]))

const namesRefused = [
  '""',
  '"  \\u3000"',
  '"a\\u0000b"',
  '"\\ud83d"',
  '"\\udc15\\ud83d"',
  JSON.stringify('x'.repeat(1_001)),
  '7',
].map(name => post(`{"name":${name},"categoryId":1}`))

const bodiesRefused = [
  post(undefined),
  post(''),
  post('{'),
  post('[]'),
  post('{}'),
  post('{"categoryId":"1","status":"lost"}'),
  post('{"name":"Rex","categoryId":1,"status":null}'),
  post(new Uint8Array([0x22, 0xff, 0x22])),
  post(rex.padEnd(65_536)),
  post(rex.padEnd(65_537)),
  post(rex, { headers: { 'content-type': 'text/plain' } }),
  post(rex, { headers: { 'content-encoding': 'gzip' } }),
]

const more = Array.from({ length: 45 }, (_, i) => animal(`Animal ${i}`, String(i - 20), statuses[i % 4]))

const walks = [1, 7, 20, 44, 100].flatMap(limit => [
  get(`/v1/pets?limit=${limit}`, { walk: true }),
  ...statuses
    .filter(Boolean)
    .map(status => get(`/v1/pets?limit=${limit}&status=${status}`, { walk: true as const })),
])

const pages = [
  get('/v1/pets'),
  get('/v1/pets', { as: 'reader' }),
  get('/v1/pets?limit=2', { method: 'HEAD' }),
  get('/v1/pets?limit=3&cursor={cursor}'),
  get('/v1/pets?limit=2&cursor={cursor}&status=sold'),
  get('/v1/pets?status=pending&limit=2'),
  get('/v1/pets?status=pending&limit=5&cursor={cursor}'),
  get('/v1/pets?limit=2&cursor={cursor}'),
  ...['x', '', 'AAAAAAAAAAAAAAAAAA', '%00', 'a'.repeat(500)].map(cursor => get(`/v1/pets?cursor=${cursor}`)),
  ...['0', '101', 'abc', '', '1.0', '-1', '1&limit=1'].map(limit => get(`/v1/pets?limit=${limit}`)),
  ...['lost', '', 'SOLD', 'sold&status=sold'].map(status => get(`/v1/pets?status=${status}`)),
  get('/v1/pets?limit=0&status=lost&cursor=x'),
  get('/v1/pets?limit=2&offset=5'),
]

const strictly = [
  get('/v1/pets?limit=2', { headers: strict }),
  get('/v1/pets?limit=2&offset=5', { headers: strict }),
  get('/v1/pets/1?verbose=1', { headers: strict }),
  post('{"name":"Rex","categoryId":1}', { headers: strict }),
  post('{"id":7,"name":"Rex","categoryId":1,"colour":"brown"}', { headers: strict }),
  post('{"id":7,"name":"Rex","categoryId":1,"colour":"brown"}'),
]

const single = [
  ...['1', '2', '3', '10', '26', '27', '%31'].map(id => get(`/v1/pets/${id}`)),
  ...[
    '0',
    '-1',
    'abc',
    '1.5',
    '01',
    '9223372036854775807',
    '9223372036854775808',
    '-9223372036854775808',
  ].map(id => get(`/v1/pets/${id}`)),
  get('/v1/pets/1', { method: 'HEAD' }),
  get('/v1/pets/99999', { method: 'HEAD' }),
]

const callers = [
  ...([null, 'revoked', 'expired', 'stranger'] as const).map(as => get('/v1/pets', { as })),
  get('/v1/pets', { as: null, headers: { authorization: 'Basic dXNlcjpwYXNz' } }),
  get('/v1/pets/1', { as: 'revoked' }),
  post(rex, { as: 'reader' }),
  post(rex, { as: null }),
  get('/v1/nothing', { as: null }),
  get('/v1/nothing'),
  get('/v1/store/orders'),
  ...['PUT', 'PATCH', 'DELETE', 'OPTIONS'].map(method => get('/v1/pets', { method })),
  get('/v1/pets/1', { method: 'POST' }),
  get('/openapi.json', { as: null }),
]

const retries = [
  once('order-1', rex),
  once('order-1', rex),
  once('"order-1"', '{ "categoryId": 9223372036854775807.0, "name": "\\u0052ex" }'),
  once('order-1', '{"name":"Max","categoryId":9223372036854775807}'),
  once('order-1', '{"name":"Rex","categoryId":9223372036854775807,"status":"sold"}'),
  once('order-1', rex, { as: 'other clerk' }),
  once('order-1', rex, { as: 'reader' }),
  once('order-2', '{"name":""}'),
  once('order-2', rex),
  ...['""', 'a b', '"a', 'x'.repeat(256)].map(key => once(key, rex)),
  once('x'.repeat(255), rex),
  get('/v1/pets?limit=1', { headers: { 'idempotency-key': '""' } }),
]

export const recordedRequests: readonly RecordedRequest[] = [
  ...empty,
  ...integers,
  ...integersRefused,
  ...names,
  ...namesRefused,
  ...bodiesRefused,
  ...more,
  ...walks,
  ...pages,
  ...strictly,
  ...single,
  ...callers,
  ...retries,
  get('/v1/pets?limit=100', { walk: true }),
]
