import { afterAll, expect, test } from 'bun:test'
import { type Exchange, exchange, type Reply } from '../support/connections.ts'
import { loggedBy, startServer } from '../support/process.ts'

/**
 * A row: its name, the bytes that are sent, and the outcome: each reply with the code of its Error, or `empty` if the runtime
 * answers by itself, and then the state of the connection. A row has several outcomes if the reply can be lost with the
 * connection, so that a client cannot know whether its animal was stored.
 */
type Row = readonly [name: string, bytes: string, ...outcomes: readonly string[]]

/** The runtime's own refusals: our code never sees these requests, and they have no Error body. */
const refused = '400 empty, closed'
const refusedVersion = '505 empty, closed'
const refusedSize = '431 empty, closed'
const dropped = 'nothing, closed'
const listed = '200, open'
const added = '201, open'

const key = 'a-key-for-malformed-requests-01'

/** Replaced by each row's own name of the same length, to count how many of its animals were stored. */
const placeholder = '???'
const animal = `{"name":"${placeholder}","categoryId":7}`

const server = await startServer({ env: { PETSTORE_API_KEY: key } })
afterAll(() => server[Symbol.asyncDispose]())

const credential = `Host: pets.example\r\nAuthorization: Bearer ${key}\r\n`

const request = (method: string, target: string, version: string, headers = '') =>
  `${method} ${target} ${version}\r\n${credential}${headers}\r\n`
const get = (headers = '', target = '/v1/pets?limit=1') => request('GET', target, 'HTTP/1.1', headers)
const post = (headers: string, body: string) => request('POST', '/v1/pets', 'HTTP/1.1', headers) + body
const sized = (length: string | number) => `Content-Length: ${length}\r\n`
const encoded = (encoding: string) => `Transfer-Encoding: ${encoding}\r\n`
const chunked = encoded('chunked')
const lastChunk = '0\r\n\r\n'
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

/** One row for each variant, all with the same outcome. */
const rows = (outcome: string, what: string, bytes: (variant: string) => string, variants: readonly string[]) =>
  variants.map((variant): Row => [`${what} ${JSON.stringify(variant)}`, bytes(variant), outcome])

const right = animal.length
const size = right.toString(16)
const withLengths = (...lengths: readonly (string | number)[]) => post(lengths.map(sized).join(''), animal)
const wrapped = (2n ** 64n + BigInt(right)).toString()
const inChunks = chunk(animal) + lastChunk
/** One chunk, its size line as given. */
const sizedChunk = (line: string) => post(chunked, `${line}${animal}\r\n${lastChunk}`)
const encodedAs = (encoding: string) => post(encoded(encoding), inChunks)
const hosted = (host: string) => get().replace('Host: pets.example\r\n', host)
const line = (text: string) => `${text}\r\n${credential}\r\n`
const sound = post(sized(right), animal)

const malformed: readonly Row[] = [
  ...rows(refused, 'Content-Length', withLengths, [
    ...['', '-1', '2 9', `+${right}`, `0x${size}`, `${right}.0`, `${right}a`, `${right}, ${right}`],
    ...['99999999999999999999999', wrapped],
  ]),
  ['a Content-Length with zeros in front', withLengths(`000${right}`), added],
  ['a length above our limit', withLengths(65_537), '413 body_too_large, unfinished'],
  ['a length that is too long, then GET', withLengths(right + 1) + get(), dropped, '400 invalid_json, closed'],
  ['no length, so that the body is a request', post('', animal), refused, '400 missing_body; 400 empty, closed'],
  // The runtime finds the line end while the animal is being stored, and its response comes first.
  ['a line end behind a POST', `${sound}\r\n`, refused, '201; 400 empty, closed'],

  ...rows(refused, 'the chunk size line', sizedChunk, [
    ...['zz\r\n', '-1\r\n', `0x${size}\r\n`, `+${size}\r\n`, ` ${size}\r\n`, `${size} \r\n`, '\r\n', '5\r\n'],
    ...['fffffffffffffffff\r\n', `100000000000000${size}\r\n`, `${size};a="\r\n"\r\n`],
    ...[`${size};a\n`, `${size}\n`, `${size}\r`],
  ]),
  ...rows(added, 'the chunk size line', sizedChunk, [`${'0'.repeat(40)}${size}\r\n`, `${size};a=b\r\n`]),
  ['sound chunks', post(chunked, chunk(animal.slice(0, 9)) + chunk(animal.slice(9)) + lastChunk), added],
  ['a chunk without a line end', post(chunked, `${size}\r\n${animal}${lastChunk}`), refused],
  ['chunks without a last one, then GET', post(chunked, chunk(animal)) + get(), refused],
  // The runtime refuses trailers, but finds them only after it has passed the body to us.
  ['a trailer', post(chunked, `${chunk(animal)}0\r\nX-Trailer: 1\r\n\r\n`), refused, '201; 400 empty, closed'],

  ...rows(refused, 'Transfer-Encoding', encodedAs, [
    ...['xchunked', 'identity', 'chunked, identity', 'gzip, chunked', 'chunked, chunked', '"chunked"', ''],
    ...['\x0bchunked', 'chunked\r\nTransfer-Encoding: identity', 'chunked\r\nTransfer-Encoding: chunked'],
  ]),
  ['Transfer-Encoding on HTTP/1.0', encodedAs('chunked').replace('HTTP/1.1', 'HTTP/1.0'), refused],

  ...rows(refused, 'the header', get, [
    ...['X-Odd : 1\r\n', 'X-Odd\t: 1\r\n', 'X-Odd: 1\r\n 2\r\n', 'X-Odd: 1\r\n\t2\r\n', 'X-Odd\r\n', ': 1\r\n'],
    ...['X Odd: 1\r\n', 'X-Odd: 1\nX-Other: 2\r\n', 'X-Odd: 1\rX-Other: 2\r\n', 'X-Odd: 1\r\r\n', 'X-\xe9: 1\r\n'],
    ...['X-O\0dd: 1\r\n', 'X-Odd: 1\0\r\n', 'X-Odd: 1\x07\r\n'],
  ]),
  ['bare LF line ends', get().replaceAll('\r\n', '\n'), refusedVersion],
  ['250 headers', get('X-Odd: 1\r\n'.repeat(250)), refusedSize],
  ['a target of 20 KB', get('', `/v1/pets?${'a'.repeat(20_000)}`), refusedSize],
  ['no Host', hosted(''), refused],
  ...rows(listed, 'the Host', hosted, ['Host: a.example\r\nHost: b.example\r\n', 'Host: \r\n', 'Host: \\@[:/#?\r\n']),

  ...rows(refusedVersion, 'the request line', line, [
    ...['GET /v1/pets HTTP/0.9', 'GET /v1/pets HTTP/2.0', 'GET /v1/pets http/1.1', 'GET /v1/pets PETS'],
    ...['GET /v1/pets HTTP/1.1 x', 'GET /v1/pets and more HTTP/1.1', 'GET /v1/pe\0ts HTTP/1.1'],
  ]),
  ...rows(refused, 'the request line', line, [
    ...['GET  /v1/pets HTTP/1.1', 'GET gopher://x/v1/pets HTTP/1.1', 'GET v1/pets HTTP/1.1', 'GET * HTTP/1.1'],
  ]),
  ...rows(listed, 'the request line', line, ['GET /v1/../v1/./pets HTTP/1.1', 'GET http://x.example/v1/pets HTTP/1.1']),
  ...rows(dropped, 'the request line', line, ['get /v1/pets HTTP/1.1', 'FOO /v1/pets HTTP/1.1']),
  ['HTTP/1.0', line('GET /v1/pets HTTP/1.0'), '200, closed'],
  ...rows(refused, 'the bytes', bytes => bytes, [
    ...['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '\0'.repeat(64), '\r\n'.repeat(50), `\r\n\r\n${get()}`],
    `\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03${'Z'.repeat(160)}`,
  ]),

  // The runtime closes the connection if a request is pipelined behind a response that is not ready yet.
  ['GET, then POST', get() + sound, dropped, '200; 201, open'],
  ['POST, then POST', sound.repeat(2), dropped, '201; 201, open'],
  ['a chunked POST, then GET', post(chunked, inChunks) + get(), dropped, '201; 200, open'],
  ['GET, then garbage', `${get()}garbage\r\n\r\n`, dropped, refused, '200; 400 empty, closed'],
  ['GET with Connection: close, then POST', get('Connection: close\r\n') + sound, '200, closed'],
  ['an upgrade, then POST', get('Connection: Upgrade\r\nUpgrade: h2c\r\n') + sound, dropped, '200; 201, open'],
]

const smuggledName = 'Smuggled'
const smuggledAnimal = `{"name":"${smuggledName}","categoryId":7}`
/** Whole and valid, but always inside another request: its animal must never be stored. */
const smuggled = post(sized(smuggledAnimal.length), smuggledAnimal)
const length = smuggled.length
const zeroThenPost = lastChunk + smuggled
const hidden = `1;\nx\r\n${zeroThenPost.length.toString(16)}\r\n${zeroThenPost}\r\n${lastChunk}`
const deleting = request('DELETE', '/v1/pets', 'HTTP/1.1', sized(length)) + smuggled
const keyless = post(sized(length), smuggled).replace(/Authorization: .*\r\n/, '')
const spaced = 'Transfer-Encoding : chunked\r\n'
const trailing = post(chunked, `${chunk('{}')}0\r\n${smuggled}`)

/** Where there is a whole POST. */
const smuggling: readonly Row[] = [
  ['in the body of a GET', get(sized(length)) + smuggled, listed],
  ['in the chunked body of a GET', get(chunked) + chunk(smuggled) + lastChunk, '200, closed'],
  ['in the body of a DELETE', deleting, '405 method_not_allowed, open'],
  ['in the body of a POST without a key', keyless, '401 missing_api_key, open'],
  ['in the body of a POST that is too large', post(sized(70_000), smuggled), '413 body_too_large, unfinished'],
  ['in the body of a POST', post(sized(length), smuggled), '400 invalid_json, open'],
  ['behind the last chunk, within the length', post(sized(length + 5) + chunked, zeroThenPost), refused],
  ['behind the length, within a chunk', post(chunked + sized(4), chunk(smuggled) + lastChunk), refused],
  ['behind the first of two lengths', post(sized(0) + sized(length), smuggled), refused],
  ['behind an xchunked body', post(sized(length + 5) + encoded('xchunked'), zeroThenPost), refused],
  ['behind a body that is chunked before a space', post(sized(length + 5) + spaced, zeroThenPost), refused],
  ['with its length behind a bare CR', post(`X-Odd: 1\r${sized(length)}`, smuggled), refused],
  ['with its length folded', post(sized(`\r\n ${length}`), smuggled), refused],
  ['behind a length that wraps to 0', post(sized('18446744073709551616'), smuggled), refused],
  ['behind a chunk extension', post(chunked, hidden), refused],
  ['in the trailers', trailing, refused, '400 invalid_request; 400 empty, closed'],
  ['behind CONNECT', request('CONNECT', 'pets.example:80', 'HTTP/1.1') + smuggled, '404 not_found, unfinished'],
]

const all = [...malformed, ...smuggling.map(([where, ...rest]): Row => [`a POST ${where}`, ...rest])]

/** Sent on a connection that stayed open. No row gets the response that it gets. */
const follower = get('', '/v1/pets/0')
const followed = '404 pet_not_found'

function shown({ status, text }: Reply): string {
  if (text === '') return `${status} empty`
  return status < 400 ? String(status) : `${status} ${JSON.parse(text).code}`
}

function outcomeOf({ replies, closed }: Exchange): string {
  const answers = replies.map(shown)
  if (closed) return `${answers.join('; ') || 'nothing'}, closed`
  return answers.at(-1) === followed ? `${answers.slice(0, -1).join('; ')}, open` : `${answers.join('; ')}, unfinished`
}

const count = (text: string, part: string) => text.split(part).length - 1
const repliesOf = (outcome: string) => (outcome.startsWith('nothing') ? 0 : count(outcome, '; ') + 1)

/** How many animals of this name are stored. */
async function kept(name: string): Promise<number> {
  const response = await server.fetch('/pets?limit=100', key)
  expect(response.status).toBe(200)
  const pets = (await response.json()) as readonly { readonly name: string }[]
  return pets.filter(pet => pet.name === name).length
}

/** Each row whole, and again in eight pieces, under a name of its own. */
const runs = [1, 8].flatMap(pieces =>
  all.map((row, index) => {
    const name = `${pieces}${index.toString(36).padStart(2, '0')}`
    return [pieces === 1 ? row[0] : `${row[0]}, in pieces`, row, name, pieces] as const
  }),
)

test.concurrent.each(runs)('%s: as listed, and nothing is smuggled', async (_, row, name, piecesMax) => {
  const [, bytes, ...outcomes] = row
  const named = bytes.replaceAll(placeholder, name)
  const pieces = named.match(new RegExp(`[^]{1,${Math.ceil(named.length / piecesMax)}}`, 'g')) ?? []
  const expected = Math.max(1, ...outcomes.map(repliesOf))
  const ends = outcomes.every(one => !one.endsWith('unfinished'))
  const outcome = outcomeOf(await exchange(server.port, pieces, { expected, quietMs: 0, ...(ends && { follower }) }))
  // Bytes sent on a closed connection reset it, and the reset can overtake the response.
  const canReset = piecesMax > 1 && outcomes.some(one => one.endsWith('closed'))
  expect(canReset ? [...outcomes, dropped] : outcomes).toContain(outcome)
  // Acknowledged animals are stored; others may be stored only if the reply could be lost.
  const acknowledged = count(outcome, '201')
  const atMost = outcomes.length > 1 ? count(bytes, placeholder) : acknowledged
  expect(await kept(name)).toBeWithin(acknowledged, atMost + 1)
  expect(await kept(smuggledName)).toBe(0)
})

test('after all of that the server stops as usual', async () => {
  expect(await kept(smuggledName)).toBe(0)
  const stopped = await server.stop('SIGTERM')
  expect([stopped.exitCode, loggedBy(stopped)]).toEqual([0, ['info Stopping']])
  expect(stopped.stdout + stopped.stderr).not.toContain(key)
})
