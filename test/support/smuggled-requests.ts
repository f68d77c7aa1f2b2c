import {
  animal,
  chunk,
  chunked,
  dropped,
  encoded,
  get,
  lastChunk,
  listed,
  type MalformedRow,
  malformedKey,
  post,
  refused,
  request,
  sized,
} from './malformed-bytes.ts'

export const smuggledName = 'Smuggled'
const smuggledAnimal = `{"name":"${smuggledName}","categoryId":7}`
/** Whole and sound, but always inside of another request: nobody may ever see its animal. */
const smuggled = post(sized(smuggledAnimal.length), smuggledAnimal)
const sound = post(sized(animal.length), animal)

const pipelines: readonly MalformedRow[] = [
  ['two GETs at once', get().repeat(2), '200; 200, open'],
  ['fifty GETs at once', get().repeat(50), `${Array(50).fill('200').join('; ')}, open`],
  ['GET, then POST', get() + sound, '200; 201, open'],
  // The runtime drops what is pipelined behind an answer that is not ready yet, and the answer with it.
  ['POST, then GET', sound + get(), dropped, '201; 200, open'],
  ['POST, then POST', sound.repeat(2), dropped, '201; 201, open'],
  ['a chunked POST, then GET', post(chunked, chunk(animal) + lastChunk) + get(), dropped, '201; 200, open'],
  ['GET, then garbage', `${get()}garbage\r\n\r\n`, '200; 400 empty, closed'],
  ['GET with Connection: close, then POST', get('Connection: close\r\n') + sound, '200, closed'],
  ['an upgrade, then POST', get('Connection: Upgrade\r\nUpgrade: h2c\r\n') + sound, '200; 201, open'],
  [
    'a POST refused for its type, then GET',
    post(`Content-Type: text/plain\r\n${sized(animal.length)}`, animal) + get(),
    '415 unsupported_media_type; 200, open',
  ],
]

const zeroThenPost = lastChunk + smuggled
const length = smuggled.length

const smuggling: readonly MalformedRow[] = [
  ['a POST in the body of a GET', get(sized(length)) + smuggled, listed],
  ['a POST in the chunked body of a GET', get(chunked) + chunk(smuggled) + lastChunk, listed],
  [
    'a POST in the body of a DELETE',
    request('DELETE', '/v1/pets', 'HTTP/1.1', sized(length)) + smuggled,
    '405 method_not_allowed, open',
  ],
  [
    'a POST in the body of a POST without a key',
    post(sized(length), smuggled).replace(`Authorization: Bearer ${malformedKey}\r\n`, ''),
    '401 missing_api_key, open',
  ],
  [
    'a POST in the body of a POST that is too large',
    post(sized(70_000), smuggled),
    '413 body_too_large, stuck',
  ],
  ['a POST in the body of a POST', post(sized(length), smuggled), '400 invalid_json, open'],
  [
    'a POST behind the last chunk, within the length',
    post(sized(length + 5) + chunked, zeroThenPost),
    refused,
  ],
  [
    'a POST behind the length, within a chunk',
    post(chunked + sized(4), chunk(smuggled) + lastChunk),
    refused,
  ],
  ['a POST behind the first of two lengths', post(sized(0) + sized(length), smuggled), refused],
  ['a POST behind the second of two lengths', post(sized(length) + sized(0), smuggled), refused],
  ['a POST behind an xchunked body', post(sized(length + 5) + encoded('xchunked'), zeroThenPost), refused],
  [
    'a POST behind a body that is chunked before a space',
    post(`${sized(length + 5)}Transfer-Encoding : chunked\r\n`, zeroThenPost),
    refused,
  ],
  ['a POST with its length behind a bare CR', post(`X-Odd: 1\r${sized(length)}`, smuggled), refused],
  ['a POST with its length behind a bare LF', post(`X-Odd: 1\n${sized(length)}`, smuggled), refused],
  ['a POST with its length folded', post(sized(`\r\n ${length}`), smuggled), refused],
  ['a POST behind a length that wraps to 0', post(sized('18446744073709551616'), smuggled), refused],
  ['a POST behind a bad chunk', post(chunked, `zz\r\n\r\n${smuggled}`), refused],
  [
    'a POST hidden by a chunk extension',
    post(chunked, `1;\nx\r\n${zeroThenPost.length.toString(16)}\r\n${zeroThenPost}\r\n${lastChunk}`),
    refused,
  ],
  [
    'a POST in the trailers',
    post(chunked, `${chunk('{}')}0\r\n${smuggled}`),
    refused,
    '400 invalid_request; 400 empty, closed',
  ],
  [
    'a POST behind CONNECT',
    request('CONNECT', 'pets.example:80', 'HTTP/1.1') + smuggled,
    '404 not_found, stuck',
  ],
]

export const smuggledRequests = [...pipelines, ...smuggling]
