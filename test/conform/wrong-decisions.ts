import { adding, answering, changedList, error, refusing, type Wrongness } from '../support/wrong-server.ts'
import type { Row } from './wrong-contract.ts'

const withType = (form: RegExp) => refusing(415, ({ headers }) => form.test(headers.get('content-type') ?? 'none'))
const puts = refusing(405, ({ method }) => method === 'PUT')
const posts = (body: RegExp) => refusing(400, asked => asked.method === 'POST' && body.test(asked.body))
const larger = (bytes: number) => refusing(413, ({ body }) => body.length >= bytes)
const allowing = (Allow: string): Wrongness => ({
  instead: ({ method }) => (method === 'GET' ? undefined : { ...error(405), headers: { Allow } }),
})
const at = (path: string, status: number, body: unknown): Wrongness => ({
  instead: asked => (asked.path === path ? { status, body } : undefined),
})
const only = (status: number, headers: Readonly<Record<string, string>>) =>
  adding(headers, reply => reply.status === status)
/** Every list has a link to the same page. */
const endless = adding({ Link: '</v1/pets?limit=1&cursor=abc>; rel="next"' })

export const wrongDecisions: readonly Row[] = [
  ['a request without a key', 'Basic', adding({ 'WWW-Authenticate': 'Basic' })],
  ['with another scheme', 'no WWW-Authenticate'],
  ['with a scheme and no key', 'no WWW-Authenticate'],
  ['a request with a wrong key', 'Bearer realm="petstore"', adding({ 'WWW-Authenticate': 'Bearer realm="petstore"' })],
  ['the scheme Bearer may be in any case', '401'],
  ['a request with two keys is 401', '200', { hear: asked => ({ ...asked, headers: firstKeyOnly(asked.headers) }) }],

  ['GET of an unknown path without a key is 401', '404'],
  ['GET of an unknown path is 404', '400', refusing(400, ({ path }) => path.startsWith('/conform'))],
  ['PUT /pets without a key is 401', '405', puts],
  ['PUT of an unknown path is 404', '405', puts],
  ['POST /pets with invalid JSON and without a key is 401', '400', posts(/^\{"name":$/)],
  ['POST /pets with invalid JSON as text/plain is 415', '400'],
  ['POST /pets with more than 64 KiB of text/plain is 415', '413', larger(65_537)],
  ['PUT /pets is 405, and Allow lists GET, HEAD and POST', 'GET, POST', allowing('GET, POST')],
  ['POST /pets/{petId} is 405, and Allow lists GET and HEAD', 'GET, HEAD, POST', allowing('GET, HEAD, POST')],
  ['HEAD /pets has the headers of GET and no body', 'no x-more', headWithout('x-more')],
  ['HEAD /pets/{petId} has the headers of GET and no body', 'no x-more', headWithout('x-more')],
  ['GET /store/orders is 404', '200', at('/store/orders', 200, [])],

  ['a Content-Type may have parameters', '415', withType(/;/)],
  ['a body without a Content-Type is read as JSON', '415', withType(/^none$/)],
  ['POST /pets with another media type is 415', '201'],
  ['POST /pets with a Content-Encoding is 415', '201'],
  ['POST /pets with an empty body of text/plain is 400', '415', withType(/text\/plain/)],
  ['POST /pets with an empty object in 64 KiB is 400', '413', larger(65_536)],
  ['POST /pets with more than 64 KiB is 413', '400'],
  ['POST /pets with a body that is not UTF-8 is 400', '\ufffd'],
  ['responses are JSON for any Accept header', 'text/html', { contentType: () => 'text/html' }],
  ['Location is the address of the new animal', '/v1/pets/0', adding({ Location: '/v1/pets/0' })],
  ['a higher id than earlier ones', '"id":-2', answering(201, pet => ({ ...pet, id: -BigInt(Number(pet['id'])) }))],

  ['POST /pets with an empty name', '201'],
  ['POST /pets with a name of white space', '201'],
  ['POST /pets with a name of more than 1,000 characters', 'Sorry', posts(/x{900}/)],
  ['POST /pets with a name with U+0000', '201'],
  ['POST /pets with a name with an unpaired surrogate', '201'],
  ['most of them surrogate pairs', '400', posts(/🐕{900}/u)],
  [
    'outer spaces and combining characters',
    '"conform',
    answering(201, pet => ({ ...pet, name: String(pet['name']).trim() })),
  ],
  ['a categoryId may be 1.50e2', '400'],
  ['a categoryId may be -9223372036854775808', '400', posts(/"categoryId":-/)],
  ['an animal added without a status has none', '"available"'],
  ['POST /pets with the status null', '201'],
  ['unknown properties are ignored', '"id":-7', at('/pets', 201, { id: -7n, name: 'Rex', categoryId: 1n })],
  [
    'strict handling, an unknown property',
    'no Preference-Applied',
    answering(400, body => ({ ...body, message: 'colour' })),
  ],
  ['an unknown parameter is ignored', '400', refusing(400, ({ query }) => query.has('colour'))],
  ['strict handling, an unknown parameter', '200'],
  ['three problems', '"name"', answering(400, body => ({ ...body, message: 'name' }))],

  ['GET /pets with a limit below 1', 'limit=0 returned 200'],
  ['GET /pets with a limit above 100', 'limit=101 returned 200'],
  ['GET /pets with a limit that is not an integer', 'limit=abc returned 200'],
  ['GET /pets with an empty limit', 'limit= returned 200'],
  ['GET /pets with a repeated limit', '200'],
  ['GET /pets with an unknown status', 'Sorry', refusing(400, ({ query }) => query.has('status'))],
  ['GET /pets with an empty status', '200'],
  ['GET /pets with a repeated status', '200'],
  ['two problems', 'limit is 0', at('/pets', 400, { code: 'bad', message: 'limit is 0', status: 400n })],
  ['text that is not an int64', '/pets/1.5 returned 400', refusing(400, ({ path }) => path === '/pets/1.5')],

  ['the list is in ascending order of id', 'lists 24 after 25'],
  ['Link leads to the next page while more animals follow', 'lists 25 after 25', endless],
  ['the next link has limit, status and a cursor', '/pets?limit=1&cursor=abc', endless],
  [
    'following the next links',
    'cursor=abc lists 25 after 25',
    both(
      changedList(pets => pets.toReversed()),
      endless,
    ),
  ],
  ['GET /pets with an unknown cursor is 400', 'cursor=conform returned 200'],
  ['GET /pets with a changed cursor is 400', 'cursor=abA returned 200', endless],
  ['GET /pets with the cursor of another status is 400', 'status=sold&cursor=abc returned 200', endless],

  ['X-Request-Id is the one', 'always-mine', adding({ 'X-Request-Id': 'always-mine' })],
  ['X-Request-Id is new', 'always-mine', adding({ 'X-Request-Id': 'always-mine' })],
  ['Cache-Control: no-store', 'no-cache', adding({ 'Cache-Control': 'no-cache' })],
  [
    'X-Content-Type-Options: nosniff',
    'no X-Content-Type-Options',
    adding({ 'X-Content-Type-Options': 'nosniff' }, ({ status }) => status !== 404),
  ],
  ['an Error has no other fields', 'hint', answering(401, body => ({ ...body, hint: 'Log in' }))],
  ['the code of an Error is in lower_snake_case', 'E401'],
  ['Deprecation header on 200', '@1', adding({ Deprecation: '@1' })],
  ['Deprecation header on 404', 'no Deprecation', only(200, { Deprecation: '@1794700800' })],
  ['Sunset header on 200', '2031', adding({ Sunset: 'Fri, 05 Dec 2031 00:00:00 GMT' })],
  ['Sunset header on 404', 'no Sunset', only(200, { Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' })],
  [
    'links to its documentation',
    'status=sold',
    adding({ Link: '</d>; rel="deprecation", </v1/pets?status=sold>; rel=successor-version' }),
  ],
  ['/openapi.json', '{}', at('../openapi.json', 200, {})],

  ['repeated with its Idempotency-Key', 'no Idempotency-Replayed', answering(201, pet => ({ ...pet, id: 7n }))],
  ['with and without quotes', '"id":27'],
  ['used for another animal', '201'],
  ['an Idempotency-Key of 256 characters', '201'],
  ['a creation that failed', '201', only(201, { 'Idempotency-Replayed': 'true' })],
]

function firstKeyOnly(headers: Headers): Headers {
  const [scheme, key] = headers.get('authorization')?.split(' ') ?? []
  return new Headers({ authorization: `${scheme} ${key}` })
}

/** HEAD lacks a header that GET has. */
function headWithout(header: string): Wrongness {
  return {
    hear: asked => ({
      ...asked,
      method: 'GET',
      headers: new Headers([...asked.headers, ['x-method', asked.method]]),
    }),
    say: (reply, { headers }) =>
      headers.get('x-method') === 'HEAD' ? reply : { ...reply, headers: { [header]: '1' } },
  }
}

/** Applies both defects to a response. */
function both(first: Wrongness, second: Wrongness): Wrongness {
  return {
    say(reply, asked) {
      const said = first.say?.(reply, asked) ?? reply
      return second.say?.(said, asked) ?? said
    },
  }
}
