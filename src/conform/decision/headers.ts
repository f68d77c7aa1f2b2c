import { isJsonObject } from '../../int64.ts'
import { absentId, someAnimal } from '../animals.ts'
import { type Check, fail, rules } from '../check.ts'
import { errorIn, expectHeader, expectStatus, jsonIn, shown } from '../expectation.ts'
import { linkTo } from '../pages.ts'
import type { Answer, Probe } from '../probe.ts'

const headers = rules('decision', 'docs/interface.md, Headers')
const errors = rules('decision', 'docs/interface.md, Errors')
const fetching = rules('decision', 'docs/interface.md, getPet')
const document = rules('decision', 'docs/interface.md, The interface')

const requestIdHeader = 'X-Request-Id'

export const headerDecisions: readonly Check[] = [
  headers.reads("X-Request-Id is the client's own", async probe => {
    const id = `conform-${crypto.randomUUID()}`
    const answer = await probe.send('/pets?limit=1', { headers: { [requestIdHeader]: id } })
    const found = expectHeader(answer, requestIdHeader, /./, id)
    if (found !== id) fail(`${requestIdHeader}: ${id}`, found)
  }),
  headers.reads('X-Request-Id is a new one where the client has none, or an odd one', async probe => {
    const seen = new Set<string>()
    for (const sent of [{}, {}, { [requestIdHeader]: '<conform>' }]) {
      const answer = await probe.send('/pets?limit=1', { headers: sent })
      seen.add(expectHeader(answer, requestIdHeader, /^[^<]+$/, 'a new id'))
    }
    if (seen.size !== 3) fail('another X-Request-Id on every answer', [...seen].join(', '))
  }),
  headers.reads('every answer is not to be stored', async probe => {
    for (const answer of await answersOfEachKind(probe)) {
      expectHeader(answer, 'Cache-Control', /^no-store$/, 'no-store')
    }
  }),
  headers.reads('the type of every answer is not to be guessed', async probe => {
    for (const answer of await answersOfEachKind(probe)) {
      expectHeader(answer, 'X-Content-Type-Options', /^nosniff$/, 'nosniff')
    }
  }),
  errors.reads('an Error has no other fields', async probe => {
    const answer = await probe.send('/pets', { authorization: null })
    errorIn(answer, 401)
    const error = jsonIn(answer)
    if (isJsonObject(error) && Object.keys(error).length !== 3)
      fail('code, message and status', shown(answer))
  }),
  errors.reads('the code of an Error is in lower_snake_case', async probe => {
    for (const answer of (await answersOfEachKind(probe)).slice(1)) {
      const { code } = errorIn(answer, answer.status)
      if (!/^[a-z]+(_[a-z]+)*$/.test(code)) fail('a code in lower_snake_case', code)
    }
  }),
  ...deprecation('GET /pets/{petId} tells of its deprecation', 'Deprecation', '@1794700800'),
  ...deprecation('GET /pets/{petId} tells of its end', 'Sunset', 'Thu, 05 Dec 2030 00:00:00 GMT'),
  fetching.reads('GET /pets/{petId} links to its description and its successor', async probe => {
    const answer = await probe.send(`/pets/${(await someAnimal(probe)).id}`)
    const link = expectHeader(answer, 'Link', /./, 'rel="deprecation" and rel="successor-version"')
    if (linkTo(link, 'deprecation') === undefined) fail('a link with rel="deprecation"', link)
    const successor = linkTo(link, 'successor-version')
    if (!successor?.endsWith('/pets?status=available')) {
      fail('a link to /pets?status=available with rel="successor-version"', link)
    }
  }),
  document.reads('the OpenAPI document is beside the base address, and names its servers', async probe => {
    // The dots are resolved before the request is sent: it stands beside the version prefix.
    const answer = await probe.send('/../openapi.json', { authorization: null })
    expectStatus(answer, 200)
    const description = jsonIn(answer)
    const servers = isJsonObject(description) ? description['servers'] : undefined
    if (!Array.isArray(servers) || servers.length === 0)
      fail('an OpenAPI document with servers', shown(answer))
  }),
]

/** On 200 and on 404. */
function deprecation(name: string, header: string, value: string): readonly Check[] {
  const form = new RegExp(`^${RegExp.escape(value)}$`)
  return [
    fetching.reads(name, async probe => {
      const { id } = await someAnimal(probe)
      expectHeader(await probe.send(`/pets/${id}`), header, form, value)
    }),
    fetching.reads(`${name} on 404 too`, async probe => {
      const answer = await probe.send(`/pets/${absentId()}`)
      expectStatus(answer, 404)
      expectHeader(answer, header, form, value)
    }),
  ]
}

/** 200, then errors: 401 and 404. */
async function answersOfEachKind(probe: Probe): Promise<readonly Answer[]> {
  return [
    await probe.send('/pets?limit=1'),
    await probe.send('/pets', { authorization: null }),
    await probe.send(`/pets/${absentId()}`),
  ]
}
