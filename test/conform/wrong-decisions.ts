import { error, type Wrongness } from '../support/wrong-server.ts'
import { adding, answering, changedList, refusing } from '../support/wrongness.ts'
import type { Row } from './wrong-contract.ts'

/** Keeps to the interface, and decided otherwise than we did: that is enough. */
const otherwise: Wrongness = {}

const type = (form: RegExp) =>
  refusing(415, ({ headers }) => form.test(headers.get('content-type') ?? 'none'))
const puts = (status: number) => refusing(status, ({ method }) => method === 'PUT')
const nowhere = ({ path }: { path: string }) => path.startsWith('/conform')
const isOne = ({ path }: { path: string }) => path.startsWith('/pets/')
const posts = (body: RegExp) => refusing(400, asked => asked.method === 'POST' && body.test(asked.body))
const allowing = (Allow: string): Wrongness => ({
  instead: ({ method }) => (method === 'GET' ? undefined : { ...error(405), headers: { Allow } }),
})
/** A link that leads back to where one is. */
const endless = adding({ Link: '</v1/pets?limit=1&cursor=abc>; rel="next"' })
const ascending = (pets: readonly object[]) => pets.toReversed()

export const wrongDecisions: readonly Row[] = [
  ['a request without a key gets the plain challenge', 'Basic', adding({ 'WWW-Authenticate': 'Basic' })],
  ['a request with another scheme gets the plain challenge', 'without it', otherwise],
  ['a request with a scheme and no key gets the plain challenge', 'without it', otherwise],
  [
    'a request with a wrong key is told that the token is invalid',
    'Bearer realm="petstore"',
    adding({ 'WWW-Authenticate': 'Bearer realm="petstore"' }),
  ],
  ['the word Bearer may be in any case', '401', otherwise],
  [
    'two keys in one header are 401',
    '200',
    { hear: asked => ({ ...asked, headers: firstKeyOnly(asked.headers) }) },
  ],

  ['an unknown path is 401 without a key', '404', otherwise],
  ['an unknown path is 404 with a key', '400', refusing(400, nowhere)],
  ['the key is judged before the method', '405', puts(405)],
  ['the path is judged before the method', '405', puts(405)],
  ['the key is judged before the body', '400', posts(/^\{"name":$/)],
  ['the type of a body is judged before its content', '400', otherwise],
  ['the type of a body is judged before its size', '413', refusing(413, ({ body }) => body.length > 65_536)],
  ['PUT /pets is 405, and Allow lists GET, HEAD and POST', 'GET, POST', allowing('GET, POST')],
  ['POST /pets/{petId} is 405, and Allow lists GET and HEAD', 'GET, HEAD, POST', allowing('GET, HEAD, POST')],
  ['HEAD /pets has the headers of GET, and no body', 'x-more', headWithout('x-more')],
  ['HEAD /pets/{petId} has the headers of GET, and no body', 'x-more', headWithout('x-more')],
  [
    'GET /store/orders is 404',
    '200',
    { instead: ({ path }) => (path === '/store/orders' ? { status: 200, body: [] } : undefined) },
  ],

  ['a Content-Type may have parameters', '415', type(/;/)],
  ['a body without a Content-Type is taken as JSON', '415', type(/^none$/)],
  ['a body of another type is 415', '201', otherwise],
  ['a body with a Content-Encoding is 415', '201', otherwise],
  ['an empty body is 400 whatever its type', '415', type(/text\/plain/)],
  ['a body of 64 KiB is read', '413', refusing(413, ({ body }) => body.length >= 65_536)],
  ['a body of more than 64 KiB is 413', '400', otherwise],
  ['a body that is not UTF-8 is 400', '\ufffd', otherwise],
  ['answers are JSON whatever Accept says', 'text/html', { contentType: () => 'text/html' }],
  ['Location has the address of the animal', '/v1/pets/0', adding({ Location: '/v1/pets/0' })],
  [
    'an animal gets a higher id than those before it',
    '"id":-2',
    answering(201, pet => ({ ...pet, id: -BigInt(Number(pet['id'])) })),
  ],

  ['a name that is empty is 400', '201', otherwise],
  ['a name that is all white space is 400', '201', otherwise],
  ['a name of more than 1,000 characters is 400', 'Sorry', posts(/x{900}/)],
  ['a name with U+0000 is 400', '201', otherwise],
  ['a name with an unpaired surrogate is 400', '201', otherwise],
  ['a name of 1,000 characters, most of them surrogate pairs is kept exactly', '400', posts(/🐕{900}/u)],
  [
    'a name with spaces around it and letters of two parts is kept exactly',
    '"conform',
    answering(201, pet => ({ ...pet, name: String(pet['name']).trim() })),
  ],
  ['an integer may be written with a fraction and an exponent', '400', otherwise],
  ['a categoryId may be any int64', '400', posts(/"categoryId":-/)],
  ['a status that is left out stays absent', '"available"', otherwise],
  ['a status of null is 400', '201', otherwise],
  [
    'unknown properties, id among them, are ignored',
    '"id":-7',
    {
      instead: ({ method }) =>
        method === 'POST' ? { status: 201, body: { id: -7n, name: 'Rex', categoryId: 1n } } : undefined,
    },
  ],
  [
    'with strict handling an unknown property is 400, and named',
    'without it',
    answering(400, body => ({ ...body, message: 'colour' })),
  ],
  ['an unknown parameter is ignored', '400', refusing(400, ({ query }) => query.has('colour'))],
  ['with strict handling an unknown parameter is 400, and named', '200', otherwise],
  ['a refused animal lists every problem', '"name"', answering(400, body => ({ ...body, message: 'name' }))],

  ['a limit below 1 is 400, and named', 'limit=0 answered 200', otherwise],
  ['a limit above 100 is 400, and named', 'limit=101 answered 200', otherwise],
  ['a limit that is no whole number is 400, and named', 'limit=abc answered 200', otherwise],
  ['an empty limit is 400, and named', 'limit= answered 200', otherwise],
  ['a limit that is given twice is 400, and named', '200', otherwise],
  [
    'a status that is none of the three is 400, and named',
    'Sorry',
    refusing(400, ({ query }) => query.has('status')),
  ],
  ['an empty status is 400, and named', '200', otherwise],
  ['a status that is given twice is 400, and named', '200', otherwise],
  [
    'a refused list names every problem',
    'Cannot read limit',
    {
      instead: ({ query }) =>
        query.get('limit') === '0'
          ? { status: 400, body: { code: 'bad', message: 'Cannot read limit', status: 400n } }
          : undefined,
    },
  ],
  [
    'a petId that is no int64 is 404',
    '/pets/1.5 answered 400',
    refusing(400, ({ path }) => path === '/pets/1.5'),
  ],

  ['the list is in ascending order of id', 'lists 24 after 25', otherwise],
  ['while animals follow, Link has the next page', 'lists 25 after 25', endless],
  ['the next link has limit, status and a cursor', '/pets?limit=1&cursor=abc', endless],
  [
    'a walk by next links shows every animal once, and ends',
    'cursor=abc lists 25 after 25',
    both(changedList(ascending), endless),
  ],
  ['a cursor that the server did not make is 400', 'cursor=conform answered 200', otherwise],
  ['a cursor that was changed is 400', 'cursor=abA answered 200', endless],
  ['a cursor of another status is 400', 'status=sold&cursor=abc answered 200', endless],

  ["X-Request-Id is the client's own", 'always-mine', adding({ 'X-Request-Id': 'always-mine' })],
  [
    'X-Request-Id is a new one where the client has none, or an odd one',
    'always-mine',
    adding({ 'X-Request-Id': 'always-mine' }),
  ],
  ['every answer is not to be stored', 'no-cache', adding({ 'Cache-Control': 'no-cache' })],
  [
    'the type of every answer is not to be guessed',
    'without it',
    adding({ 'X-Content-Type-Options': 'nosniff' }, ({ status }) => status !== 404),
  ],
  ['an Error has no other fields', 'hint', answering(401, body => ({ ...body, hint: 'Log in' }))],
  ['the code of an Error is in lower_snake_case', 'E401', otherwise],
  ['GET /pets/{petId} tells of its deprecation', '@1', adding({ Deprecation: '@1' })],
  [
    'GET /pets/{petId} tells of its deprecation on 404 too',
    'without it',
    adding({ Deprecation: '@1794700800' }, ({ status }) => status === 200),
  ],
  ['GET /pets/{petId} tells of its end', '2031', adding({ Sunset: 'Fri, 05 Dec 2031 00:00:00 GMT' })],
  [
    'GET /pets/{petId} tells of its end on 404 too',
    'without it',
    adding({ Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' }, ({ status }) => status === 200),
  ],
  [
    'GET /pets/{petId} links to its description and its successor',
    'status=sold',
    adding({ Link: '</d>; rel="deprecation", </v1/pets?status=sold>; rel=successor-version' }, (_, asked) =>
      isOne(asked),
    ),
  ],
  [
    'the OpenAPI document is beside the base address, and names its servers',
    '{}',
    { instead: ({ path }) => (path === '../openapi.json' ? { status: 200, body: {} } : undefined) },
  ],

  [
    'a creation that is sent again with its Idempotency-Key adds nothing',
    'without it',
    answering(201, pet => ({ ...pet, id: 7n })),
  ],
  ['an Idempotency-Key is the same in quotes and without', '"id":27', otherwise],
  ['an Idempotency-Key that was used for another animal is 422', '201', otherwise],
  ['an Idempotency-Key of more than 255 characters is 400', '201', otherwise],
  [
    'a creation that failed leaves its Idempotency-Key free',
    '201',
    adding({ 'Idempotency-Replayed': 'true' }, ({ status }) => status === 201),
  ],
]

function firstKeyOnly(headers: Headers): Headers {
  const [scheme, key] = headers.get('authorization')?.split(' ') ?? []
  return new Headers({ authorization: `${scheme} ${key}` })
}

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

/** Says what the one says, and then what the other makes of it. */
function both(first: Wrongness, second: Wrongness): Wrongness {
  return {
    say(reply, asked) {
      const said = first.say?.(reply, asked) ?? reply
      return second.say?.(said, asked) ?? said
    },
  }
}
