import { error, type Wrongness } from '../support/wrong-server.ts'
import { adding, answering, changedList, refusing } from '../support/wrongness.ts'
import type { Row } from './wrong-contract.ts'

const withType = (form: RegExp) =>
  refusing(415, ({ headers }) => form.test(headers.get('content-type') ?? 'none'))
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
  [
    'a request without a key gets WWW-Authenticate without an error',
    'Basic',
    adding({ 'WWW-Authenticate': 'Basic' }),
  ],
  ['a request with another scheme gets WWW-Authenticate without an error', 'no WWW-Authenticate'],
  ['a request with a scheme and no key gets WWW-Authenticate without an error', 'no WWW-Authenticate'],
  [
    'a request with a wrong key gets WWW-Authenticate with invalid_token',
    'Bearer realm="petstore"',
    adding({ 'WWW-Authenticate': 'Bearer realm="petstore"' }),
  ],
  ['the scheme Bearer may be in any case', '401'],
  [
    'a request with two keys is 401',
    '200',
    { hear: asked => ({ ...asked, headers: firstKeyOnly(asked.headers) }) },
  ],

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
  ['responses are JSON, whatever Accept says', 'text/html', { contentType: () => 'text/html' }],
  ['Location is the address of the new animal', '/v1/pets/0', adding({ Location: '/v1/pets/0' })],
  [
    'a new animal gets a higher id than earlier ones',
    '"id":-2',
    answering(201, pet => ({ ...pet, id: -BigInt(Number(pet['id'])) })),
  ],

  ['POST /pets with an empty name is 400 with a message about name', '201'],
  ['POST /pets with a name of white space is 400 with a message about name', '201'],
  [
    'POST /pets with a name of more than 1,000 characters is 400 with a message about name',
    'Sorry',
    posts(/x{900}/),
  ],
  ['POST /pets with a name with U+0000 is 400 with a message about name', '201'],
  ['POST /pets with a name with an unpaired surrogate is 400 with a message about name', '201'],
  ['a name of 1,000 characters, most of them surrogate pairs, is stored exactly', '400', posts(/🐕{900}/u)],
  [
    'a name with outer spaces and combining characters is stored exactly',
    '"conform',
    answering(201, pet => ({ ...pet, name: String(pet['name']).trim() })),
  ],
  ['a categoryId may be 1.50e2', '400'],
  ['a categoryId may be -9223372036854775808', '400', posts(/"categoryId":-/)],
  ['an animal added without a status has none', '"available"'],
  ['POST /pets with the status null is 400 with a message about status', '201'],
  [
    'unknown properties are ignored, including id',
    '"id":-7',
    at('/pets', 201, { id: -7n, name: 'Rex', categoryId: 1n }),
  ],
  [
    'with strict handling, an unknown property is 400 and named',
    'no Preference-Applied',
    answering(400, body => ({ ...body, message: 'colour' })),
  ],
  ['an unknown parameter is ignored', '400', refusing(400, ({ query }) => query.has('colour'))],
  ['with strict handling, an unknown parameter is 400 and named', '200'],
  [
    'the error for a NewPet with three problems names them all',
    '"name"',
    answering(400, body => ({ ...body, message: 'name' })),
  ],

  ['GET /pets with a limit below 1 is 400 with a message about limit', 'limit=0 returned 200'],
  ['GET /pets with a limit above 100 is 400 with a message about limit', 'limit=101 returned 200'],
  [
    'GET /pets with a limit that is not an integer is 400 with a message about limit',
    'limit=abc returned 200',
  ],
  ['GET /pets with an empty limit is 400 with a message about limit', 'limit= returned 200'],
  ['GET /pets with a repeated limit is 400 with a message about limit', '200'],
  [
    'GET /pets with an unknown status is 400 with a message about status',
    'Sorry',
    refusing(400, ({ query }) => query.has('status')),
  ],
  ['GET /pets with an empty status is 400 with a message about status', '200'],
  ['GET /pets with a repeated status is 400 with a message about status', '200'],
  [
    'the error for a query with two problems names both',
    'limit is 0',
    at('/pets', 400, { code: 'bad', message: 'limit is 0', status: 400n }),
  ],
  [
    'GET /pets/{petId} with text that is not an int64 is 404',
    '/pets/1.5 returned 400',
    refusing(400, ({ path }) => path === '/pets/1.5'),
  ],

  ['the list is in ascending order of id', 'lists 24 after 25'],
  ['Link leads to the next page while more animals follow', 'lists 25 after 25', endless],
  ['the next link has limit, status and a cursor', '/pets?limit=1&cursor=abc', endless],
  [
    'following the next links lists every animal once, and ends',
    'cursor=abc lists 25 after 25',
    both(
      changedList(pets => pets.toReversed()),
      endless,
    ),
  ],
  ['GET /pets with an unknown cursor is 400', 'cursor=conform returned 200'],
  ['GET /pets with a changed cursor is 400', 'cursor=abA returned 200', endless],
  ['GET /pets with the cursor of another status is 400', 'status=sold&cursor=abc returned 200', endless],

  ['X-Request-Id is the one that the client sent', 'always-mine', adding({ 'X-Request-Id': 'always-mine' })],
  [
    'X-Request-Id is new if the client sent none or an unsafe one',
    'always-mine',
    adding({ 'X-Request-Id': 'always-mine' }),
  ],
  ['every response has Cache-Control: no-store', 'no-cache', adding({ 'Cache-Control': 'no-cache' })],
  [
    'every response has X-Content-Type-Options: nosniff',
    'no X-Content-Type-Options',
    adding({ 'X-Content-Type-Options': 'nosniff' }, ({ status }) => status !== 404),
  ],
  ['an Error has no other fields', 'hint', answering(401, body => ({ ...body, hint: 'Log in' }))],
  ['the code of an Error is in lower_snake_case', 'E401'],
  ['GET /pets/{petId} has the Deprecation header on 200', '@1', adding({ Deprecation: '@1' })],
  [
    'GET /pets/{petId} has the Deprecation header on 404',
    'no Deprecation',
    only(200, { Deprecation: '@1794700800' }),
  ],
  [
    'GET /pets/{petId} has the Sunset header on 200',
    '2031',
    adding({ Sunset: 'Fri, 05 Dec 2031 00:00:00 GMT' }),
  ],
  [
    'GET /pets/{petId} has the Sunset header on 404',
    'no Sunset',
    only(200, { Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' }),
  ],
  [
    'GET /pets/{petId} links to its documentation and its successor',
    'status=sold',
    adding({ Link: '</d>; rel="deprecation", </v1/pets?status=sold>; rel=successor-version' }),
  ],
  ['/openapi.json, next to the base address, lists its servers', '{}', at('../openapi.json', 200, {})],

  [
    'a creation repeated with its Idempotency-Key adds nothing',
    'no Idempotency-Replayed',
    answering(201, pet => ({ ...pet, id: 7n })),
  ],
  ['an Idempotency-Key is the same with and without quotes', '"id":27'],
  ['an Idempotency-Key that was used for another animal is 422', '201'],
  ['POST /pets with an Idempotency-Key of 256 characters is 400', '201'],
  [
    'a creation that failed does not use up its Idempotency-Key',
    '201',
    only(201, { 'Idempotency-Replayed': 'true' }),
  ],
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
