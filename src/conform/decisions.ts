import { int64Max, int64Min, isJsonObject } from '../int64.ts'
import { type Check, checksOf, creates, forEach, refuses } from './check.ts'
import {
  absentId,
  type Exchange,
  errorFields,
  expectEach,
  fail,
  invalidPet,
  newPet,
  type Probe,
  petName,
  post,
  postEach,
  prerequisites,
  type Sendable,
  skip,
  wrongBearer,
} from './exchange.ts'

const asking = (authorization: string | null) => ({ path: '/pets', authorization })
const noKey = asking(null)
const noKeyIs401 = [prerequisites.noKey]
const unknown = '/conform-nothing-is-here'
const bodyBytesMax = 64 * 1024
const tooLarge = '{}'.padEnd(bodyBytesMax + 1)
const latin1 = Uint8Array.from(Buffer.from(newPet({ name: '"conform Ren\u00e9"' }), 'latin1'))
const nameCharsMax = 1_000
const tooLongName = 'conform '.padEnd(nameCharsMax + 1, 'x')
const typed = (type: string) => ({ headers: { 'Content-Type': type } })
const asText = typed('text/plain')
const asForm = typed('application/x-www-form-urlencoded')
const strict = { headers: { Prefer: 'handling=strict' } }
const notLimits = ['/pets?limit=abc', '/pets?limit=1.5', '/pets?limit=0x10']
const notIds = ['/pets/abc', '/pets/1.5', `/pets/${int64Max + 1n}`]
const safeHeaders = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
/** A request with one invalid value, and its name. */
const oneProblem: readonly (readonly [Sendable, string])[] = [
  [post(invalidPet({ name: '""' })), 'name'],
  [post(invalidPet({ categoryId: undefined })), 'categoryId'],
  [post(invalidPet({ status: 'null' })), 'status'],
  ['/pets?limit=0', 'limit'],
  ['/pets?limit=', 'limit'],
  ['/pets?limit=1&limit=1', 'limit'],
  ['/pets?status=lost', 'status'],
]
const deprecationHeaders = { Deprecation: '@1794700800', Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' }

export const decisionChecks: readonly Check[] = checksOf('decision', {
  Authentication: {
    'a request without a key gets WWW-Authenticate without an error': async probe => {
      // Another scheme and an empty key count as no key.
      for (const authorization of [null, 'Basic Y29uZm9ybTo=', 'Bearer']) {
        const refused = await probe.refused(asking(authorization), 401, noKeyIs401)
        refused.expectHeader('WWW-Authenticate', 'Bearer realm="petstore"')
      }
    },
    'a request with a wrong key gets WWW-Authenticate with invalid_token': async probe => {
      const refused = await probe.refused(asking(wrongBearer), 401, [prerequisites.wrongKey])
      const form = /^Bearer realm="petstore", error="invalid_token", error_description="[^"]+"$/
      const expected = 'Bearer realm="petstore", error="invalid_token", error_description="…"'
      refused.expectHeader('WWW-Authenticate', form, expected)
    },
    'the scheme Bearer may be in any case': async probe => {
      for (const scheme of ['bearer', 'BEARER']) {
        const response = await probe.send(asking(`${scheme} ${probe.target.key}`))
        response.expectStatus(200)
      }
    },
    ...refuses(
      'a request with two keys',
      401,
      async ({ target: { key } }) => asking(`Bearer ${key} ${key}`),
      noKeyIs401,
    ),
  },
  'The order in which a request is judged': {
    ...refuses('GET of an unknown path without a key', 401, { ...noKey, path: unknown }, noKeyIs401),
    ...refuses('GET of an unknown path', 404, unknown),
    ...refuses('PUT /pets without a key', 401, { ...noKey, method: 'PUT' }, noKeyIs401),
    ...refuses('PUT of an unknown path', 404, { path: unknown, method: 'PUT' }),
    ...refuses('POST /pets with invalid JSON and without a key', 401, post('{"name":', noKey), noKeyIs401),
    ...refuses('POST /pets with invalid JSON as text/plain', 415, post('{"name":', asText)),
    ...refuses('POST /pets with more than 64 KiB of text/plain', 415, post(tooLarge, asText)),
    [prerequisites.namedProblem]: async probe => {
      const refused: [Exchange, string][] = []
      const reads = oneProblem.filter(([request]) => typeof request === 'string')
      for (const [request, name] of probe.target.readOnly ? reads : oneProblem) {
        const exchange = await probe.send(request)
        if (exchange.response.status === 400) refused.push([exchange, name])
      }
      if (refused.length === 0) skip('the server refused none of these requests with 400')
      for (const [exchange, name] of refused) await expectAbout(probe, exchange, name)
    },
    'the error for a NewPet with three problems names them all': async probe => {
      const refused = await probe.refused(post('{"name":7,"status":"lost"}'), 400)
      await expectAbout(probe, refused, 'name', 'categoryId', 'status')
    },
    'the error for a query with two problems names both': async probe =>
      expectAbout(probe, await probe.refused('/pets?limit=0&status=lost', 400), 'limit', 'status'),
  },
  Operations: {
    'PUT /pets is 405, and Allow lists GET, HEAD and POST': async probe =>
      expectAllow(await probe.send(post(newPet(), { method: 'PUT' })), 'GET, HEAD, POST'),
    'POST /pets/{petId} is 405, and Allow lists GET and HEAD': async probe =>
      expectAllow(await probe.send(post(newPet(), { path: `/pets/${absentId()}` })), 'GET, HEAD'),
    'HEAD has the headers of GET and no body': async probe => {
      // These belong to one response or one connection.
      const volatile = /^(date|x-request-id|content-length|transfer-encoding|connection|keep-alive|ratelimit)$/
      for (const path of [await probe.petPath(), '/pets?limit=1']) {
        const { response } = await probe.send(path)
        const head = await probe.send({ path, method: 'HEAD' })
        head.expectStatus(response.status).expect(head.text === '', 'no body')
        for (const [name, value] of response.headers) if (!volatile.test(name)) head.expectHeader(name, value)
      }
    },
  },
  'What does not exist': refuses('GET /store/orders', 404, '/store/orders'),
  createPet: {
    'a Content-Type may have parameters': async probe =>
      probe.create(post(newPet(), typed('application/json; charset=utf-8'))),
    'a body without a Content-Type is read as JSON': async probe => {
      // Bytes, because fetch adds a Content-Type to a string.
      const body = new TextEncoder().encode(newPet())
      await probe.create({ path: '/pets', method: 'POST', body })
    },
    ...refuses('POST /pets with another media type', 415, [post(newPet(), asText), post(newPet(), asForm)]),
    ...refuses('POST /pets with a Content-Encoding', 415, post(newPet(), { headers: { 'Content-Encoding': 'gzip' } })),
    ...refuses('POST /pets with an empty body of text/plain', 400, post('', asText)),
    ...refuses('POST /pets with an empty object in 64 KiB', 400, post('{}'.padEnd(bodyBytesMax))),
    ...refuses('POST /pets with more than 64 KiB', 413, post(tooLarge)),
    'Location is the address of the new animal': async probe => {
      const created = await probe.create()
      const end = `/pets/${await probe.idOf(created)}`
      created.expectHeader('Location', new RegExp(`^(https?:/)?/.*${end}$`), `an address that ends in ${end}`)
    },
    'a new animal gets a higher id than earlier ones': async probe => {
      if (probe.added.length === 0) await probe.addPet()
      const before = probe.added.at(-1)?.id ?? 0n
      const created = await probe.create()
      created.expect((await probe.idOf(created)) > before, `an id above ${before}`)
    },
  },
  'Base address': {
    ...refuses('POST /pets with a body that is not UTF-8', 400, post(latin1)),
    'responses are JSON for any Accept header': async probe =>
      probe.step([prerequisites.jsonType], async () => {
        const list = await probe.send({ path: '/pets?limit=1', headers: { Accept: 'text/html' } })
        list.expectJsonType()
      }),
  },
  Resources: {
    ...refuses('POST /pets with an empty name', 400, postEach('name', [''])),
    ...refuses('POST /pets with a name of white space', 400, postEach('name', [' \t\n\u00a0'])),
    ...refuses('POST /pets with a name of more than 1,000 characters', 400, postEach('name', [tooLongName])),
    ...refuses('POST /pets with a name with U+0000', 400, postEach('name', ['conform \0'])),
    ...refuses('POST /pets with a name with an unpaired surrogate', 400, postEach('name', ['conform \ud800'])),
    ...storesName('of 1,000 characters, most of them surrogate pairs,', `conform ${'🐕'.repeat(nameCharsMax - 8)}`),
    ...storesName('with outer spaces and combining characters', `  ${petName()} e\u0301 \u00e9 `),
    ...creates('a categoryId may be 1.50e2', { categoryId: '1.50e2' }, { categoryId: 150n }),
    [`a categoryId may be ${int64Min}`]: async probe => {
      const created = await probe.create({ categoryId: String(int64Min) })
      const isExact = () => created.expectValues(created.object(), { categoryId: int64Min })
      await probe.step([prerequisites.exact], isExact)
    },
    ...creates('an animal added without a status has none', { status: undefined }, { status: undefined }),
    ...refuses('POST /pets with the status null', 400, postEach('status', [null])),
  },
  'Strict handling': {
    'unknown properties are ignored, including id': async probe => {
      const created = await probe.create({ id: '-7', colour: '"red"' })
      created.expect((await probe.idOf(created)) !== -7n, 'an id that the server assigned')
      created.expect(!Object.hasOwn(created.object(), 'colour'), 'an animal without a colour')
    },
    'with strict handling, an unknown property is 400 and named': async probe =>
      expectStrict(probe, post(newPet({ colour: '"red"' }), strict)),
    'an unknown parameter is ignored': async probe => (await probe.send('/pets?limit=1&colour=red')).expectStatus(200),
    'with strict handling, an unknown parameter is 400 and named': async probe =>
      expectStrict(probe, { path: '/pets?limit=1&colour=red', ...strict }),
  },
  listPets: {
    ...refuses('GET /pets with a limit below 1', 400, ['/pets?limit=0', '/pets?limit=-1']),
    ...refuses('GET /pets with a limit above 100', 400, ['/pets?limit=101', `/pets?limit=${int64Max + 1n}`]),
    ...refuses('GET /pets with a limit that is not an integer', 400, notLimits),
    ...refuses('GET /pets with an empty limit', 400, '/pets?limit='),
    ...refuses('GET /pets with a repeated limit', 400, '/pets?limit=1&limit=1'),
    ...refuses('GET /pets with an unknown status', 400, ['/pets?status=lost', '/pets?status=Sold']),
    ...refuses('GET /pets with an empty status', 400, '/pets?status='),
    ...refuses('GET /pets with a repeated status', 400, '/pets?status=sold&status=sold'),
  },
  getPet: {
    ...refuses('GET /pets/{petId} with text that is not an int64', 404, notIds),
    ...forEach(Object.entries(deprecationHeaders), ([name, value]) => [
      `GET /pets/{petId} has the ${name} header, also on 404`,
      async probe => {
        for (const path of [await probe.petPath(), `/pets/${absentId()}`])
          (await probe.send(path)).expectHeader(name, value)
      },
    ]),
    'GET /pets/{petId} links to its documentation and its successor': async probe => {
      const got = await probe.send(await probe.petPath())
      const found = `returned Link: ${got.header('Link') ?? 'none'}`
      got.expect(got.link('deprecation') !== undefined, 'a link with rel="deprecation"', found)
      const successor = got.link('successor-version')?.href ?? ''
      const expected = 'a link to /pets?status=available with rel="successor-version"'
      got.expect(successor.endsWith('/pets?status=available'), expected, found)
    },
  },
  Paging: {
    'the list is in ascending order of id': async probe => {
      await probe.ensurePets(2)
      const list = await probe.list('?limit=100')
      const ids = await probe.idsOf(list)
      for (const [index, id] of ids.entries()) {
        const before = ids[index - 1]
        list.expect(before === undefined || id > before, 'ascending ids', `lists ${id} after ${before}`)
      }
    },
    [prerequisites.nextLink]: async probe => {
      await probe.ensurePets(2, 'sold')
      const next = await nextOf(probe, await probe.list('?limit=1&status=sold'))
      const complete = [/\blimit=1\b/, /\bstatus=sold\b/, /\bcursor=[^&]/].every(part => part.test(next))
      if (!complete) fail('limit=1, status=sold and a cursor', next)
    },
    'X-Next-Cursor is the cursor of the next link': async probe => {
      await probe.ensurePets(2)
      const list = await probe.list('?limit=1')
      const next = await nextOf(probe, list)
      list.expectHeader('X-Next-Cursor', new URLSearchParams(next.split('?')[1]).get('cursor') ?? '')
    },
    'following the next links lists every animal once, and ends': async probe => {
      const [limit, followedMax] = [20, 30]
      await probe.ensurePets(limit + 1)
      const added = probe.added.map(({ id }) => id)
      let list = await probe.list(`?limit=${limit}`)
      const listed = new Set(await probe.idsOf(list))
      for (let next: string | undefined = await nextOf(probe, list); next !== undefined; next = list.nextPath()) {
        if (listed.size >= limit * followedMax) skip(`the catalogue has more than ${followedMax} pages of ${limit}`)
        list = await probe.list(next.slice('/pets'.length))
        for (const id of await probe.idsOf(list)) {
          list.expect(!listed.has(id), 'every animal once', `lists ${id} again`)
          listed.add(id)
        }
      }
      const missing = added.find(id => !listed.has(id))
      list.expect(missing === undefined, 'every animal', `ended before ${missing}`)
    },
    ...refuses('GET /pets with an unknown cursor', 400, '/pets?cursor=conform'),
    ...refuses('GET /pets with a changed cursor', 400, async probe => {
      const cursor = await someCursor(probe)
      const changed = cursor.slice(0, -1) + (cursor.endsWith('A') ? 'B' : 'A')
      return `/pets?limit=1&cursor=${encodeURIComponent(changed)}`
    }),
    ...refuses('GET /pets with the cursor of another status', 400, async probe => {
      return `/pets?limit=1&status=sold&cursor=${encodeURIComponent(await someCursor(probe))}`
    }),
  },
  Headers: {
    'X-Request-Id is the one that the client sent': async probe => {
      const id = `conform-${crypto.randomUUID()}`
      const response = await probe.send({ path: '/pets', headers: { 'X-Request-Id': id } })
      response.expectHeader('X-Request-Id', id)
    },
    'X-Request-Id is new if the client sent none or an unsafe one': async probe => {
      const seen = new Set<string | null>()
      for (const headers of [{}, {}, { 'X-Request-Id': '<conform>' }]) {
        const list = await probe.send({ path: '/pets', headers })
        seen.add(list.expectHeader('X-Request-Id', /^[^<]+$/, 'a new id').header('X-Request-Id'))
      }
      if (seen.size !== 3) fail('a different X-Request-Id on every response', [...seen].join(', '))
    },
    ...forEach(Object.entries(safeHeaders), ([name, value]) => [
      `every response has ${name}: ${value}`,
      async probe => {
        for (const request of ['/pets', unknown, noKey]) (await probe.send(request)).expectHeader(name, value)
      },
    ]),
  },
  Errors: {
    'an Error has no other fields': async probe => {
      const errors = await probe.readableErrors()
      expectEach(errors, error => {
        const others = Object.keys(error.object()).filter(name => !Object.hasOwn(errorFields, name))
        error.expect(others.length === 0, 'code, message and status', `also returned ${others.join(', ')}`)
      })
    },
    'the code of an Error is in lower_snake_case': async probe => {
      const isCode = (code: unknown) => typeof code === 'string' && /^[a-z]+(_[a-z]+)*$/.test(code)
      const rule = { expected: 'a code in lower_snake_case', isValid: isCode }
      const errors = await probe.readableErrors()
      const check = () => expectEach(errors, error => error.expectField(error.object(), 'code', rule))
      await probe.step([prerequisites.errorCode], check)
    },
    'a 405, a 413 and a 415 are Errors like the others': async probe => {
      const requests = [{ path: '/pets', method: 'PUT' }, post(tooLarge), post(newPet(), asText)]
      const others: Exchange[] = []
      for (const request of requests) others.push(await probe.send(request))
      expectEach(
        others.filter(({ response }) => response.status > 404),
        error => {
          for (const [field, rule] of Object.entries(errorFields)) {
            const isReported = probe.failed.has(`the ${field} of every Error is ${rule.expected}`)
            if (!isReported) error.expectField(error.object(), field, rule)
          }
        },
      )
    },
  },
  'The interface': {
    '/openapi.json, next to the base address, lists its servers': async probe => {
      // fetch resolves the dots.
      const openapi = await probe.send({ ...noKey, path: '/../openapi.json' })
      const description = openapi.expectStatus(200).json()
      const servers = isJsonObject(description) ? description['servers'] : undefined
      openapi.expect(Array.isArray(servers) && servers.length > 0, 'an OpenAPI document with servers')
    },
  },
  'Retrying a creation': {
    'a creation repeated with its Idempotency-Key adds nothing, with and without quotes': async probe => {
      const key = newKey()
      const body = newPet()
      const first = await probe.create(postWith(key, body))
      const id = await probe.idOf(first)
      for (const spelling of [key, `"${key}"`]) {
        const again = await probe.send(postWith(spelling, body))
        again.expectStatus(201).expectValues(again.object(), { id })
        again.expectHeader('Idempotency-Replayed', 'true')
      }
    },
    ...refuses('an Idempotency-Key that was used for another animal', 422, async probe => {
      const key = newKey()
      await probe.create(postWith(key))
      return postWith(key)
    }),
    ...refuses('POST /pets with an Idempotency-Key of 256 characters', 400, postWith('k'.repeat(256))),
    'a creation that failed does not use up its Idempotency-Key': async probe => {
      const key = newKey()
      await probe.refused(postWith(key, invalidPet({ name: undefined })), 400)
      const created = await probe.create(postWith(key))
      created.expect(created.header('Idempotency-Replayed') === null, 'a new animal')
    },
  },
})

function storesName(what: string, name: string) {
  const body = async (probe: Probe) => {
    const created = await probe.create({ name: JSON.stringify(name) })
    created.expectValues(created.object(), { name })
    const got = await probe.send(`/pets/${await probe.idOf(created)}`)
    await probe.step([prerequisites.get], () => got.expectValues(got.expectStatus(200).object(), { name }))
  }
  return { [`a name ${what} is stored exactly`]: body }
}

function expectAllow(refused: Exchange, methods: string): void {
  const allow = refused.expectStatus(405).expectHeader('Allow', /./, methods).header('Allow') ?? ''
  const listed = allow
    .split(/\s*,\s*/)
    .toSorted()
    .join(', ')
  refused.expect(listed === methods, `Allow: ${methods}`, `returned ${allow}`)
}

async function expectStrict(probe: Probe, request: Sendable): Promise<void> {
  const refused = await probe.refused(request, 400)
  refused.expectHeader('Preference-Applied', 'handling=strict')
  await expectAbout(probe, refused, 'colour')
}

/** The message of the Error contains these names. */
function expectAbout(probe: Probe, error: Exchange, ...names: string[]): Promise<void> {
  const { errorJson, errorMessage, namedProblem } = prerequisites
  return probe.step([errorJson, errorMessage, namedProblem], () => error.expectMessageAbout(...names))
}

/** The path of the next page. */
function nextOf(probe: Probe, list: Exchange): Promise<string> {
  const read = () =>
    list.nextPath() ?? list.fail('a Link with rel="next"', `returned Link: ${list.header('Link') ?? 'none'}`)
  return probe.step([prerequisites.limit, prerequisites.nextLink], read)
}

/** Of a list without a status. */
async function someCursor(probe: Probe): Promise<string> {
  await probe.ensurePets(2)
  const next = await nextOf(probe, await probe.list('?limit=1'))
  const read = () => new URL(next, probe.target.baseUrl).searchParams.get('cursor') || fail('a cursor', next)
  return probe.step([prerequisites.nextLink], read)
}

function newKey(): string {
  return `conform-${crypto.randomUUID()}`
}

function postWith(idempotencyKey: string, body = newPet()) {
  return post(body, { headers: { 'Idempotency-Key': idempotencyKey } })
}
