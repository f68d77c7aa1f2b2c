/**
 * A row: its name, the bytes that are sent, and what comes of them: each reply with the code of its Error, or `empty`
 * where the runtime answers by itself; then what becomes of the connection. Several outcomes stand where the reply can
 * be lost with the connection, so that a client cannot know whether its animal was kept.
 */
export type MalformedRow = readonly [name: string, bytes: string, ...outcomes: readonly string[]]

/** The runtime's own refusals: our code never sees these requests, and they have no Error body. */
export const refused = '400 empty, closed'
export const refusedVersion = '505 empty, closed'
export const refusedSize = '431 empty, closed'
export const dropped = 'nothing, closed'
export const listed = '200, open'
export const added = '201, open'

export const malformedKey = 'a-key-for-malformed-requests-01'

/** The name stands for each row's own, of the same length: see how many of its animals were kept. */
export const placeholderName = '???'
export const animal = `{"name":"${placeholderName}","categoryId":7}`

const credential = `Host: pets.example\r\nAuthorization: Bearer ${malformedKey}\r\n`

export function get(headers = '', target = '/v1/pets?limit=1'): string {
  return request('GET', target, 'HTTP/1.1', headers)
}

export function post(headers: string, body: string): string {
  return request('POST', '/v1/pets', 'HTTP/1.1', headers) + body
}

export function request(method: string, target: string, version: string, headers = ''): string {
  return `${method} ${target} ${version}\r\n${credential}${headers}\r\n`
}

export function sized(length: string | number): string {
  return `Content-Length: ${length}\r\n`
}

export function encoded(encoding: string): string {
  return `Transfer-Encoding: ${encoding}\r\n`
}

export const chunked = encoded('chunked')
export const lastChunk = '0\r\n\r\n'

export function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`
}
