import { benchKey, newPet } from '../load/load.ts'
import { type Animal, animalAt, animalsAfter } from './catalogue.ts'
import type { Rule } from './contender.ts'
import { fixedAnswer, type OurAnswers } from './our-answers.ts'
import type { Running } from './start.ts'
import { deepAfter, type WorkName } from './work.ts'

/** Throws unless a server answers as the interface says, as far as it claims to: only right answers are timed. */
export async function verify(server: Running, ours?: OurAnswers): Promise<void> {
  for (const rule of server.contender.rules) {
    try {
      await checks[rule](server, ours)
    } catch (error) {
      const { message } = error as Error
      throw new Error(`${server.contender.title} answers wrongly (${rule}): ${message}`)
    }
  }
}

type Check = (server: Running, ours?: OurAnswers) => Promise<void>

const checks: Record<Rule, Check> = {
  async bytes(server) {
    const text = await (await ask(server, pathOf(server, 'list'))).text()
    expectEqual(text, JSON.stringify(animalsAfter(0, 20)))
  },
  async animals(server) {
    await expectPage(server, pathOf(server, 'list'), animalsAfter(0, 20))
    if (!server.contender.works.includes('deep')) return
    await expectPage(server, pathOf(server, 'deep'), animalsAfter(deepAfter(server.animals), 20))
  },
  async filter(server) {
    await expectPage(server, pathOf(server, 'filtered'), animalsAfter(0, 100, 'available'))
  },
  async paging(server) {
    const second = await expectPage(server, pathOf(server, 'list'), animalsAfter(0, 20))
    const third = await expectPage(server, second ?? 'none', animalsAfter(20, 20))
    await expectPage(server, third ?? 'none', animalsAfter(40, 20))
  },
  async get(server) {
    const id = server.animals - 1
    const response = await ask(server, `${petsPath(server)}/${id}`)
    expectEqual(JSON.stringify(await response.json()), JSON.stringify(animalAt(id)))
    expectEqual((await ask(server, `${petsPath(server)}/999999999`)).status, 404)
  },
  async create(server) {
    const ids = [await create(server), await create(server)]
    expectEqual(ids, [server.animals + 1, server.animals + 2])
    const response = await ask(server, `${petsPath(server)}/${ids[1]}`)
    expectEqual(await response.json(), { ...JSON.parse(newPet), id: ids[1] })
  },
  async key(server) {
    expectEqual((await fetch(`${server.origin}${pathOf(server, 'list')}`)).status, 401)
  },
  async 'wrong key'(server) {
    const headers = { authorization: 'Bearer another-key-0123456789' }
    expectEqual((await fetch(`${server.origin}${pathOf(server, 'list')}`, { headers })).status, 401)
  },
  async validation(server) {
    for (const body of badBodies) expectEqual([body, (await post(server, body)).status], [body, 400])
    expectEqual((await ask(server, `${petsPath(server)}?limit=101`)).status, 400)
    expectEqual((await ask(server, `${petsPath(server)}?status=lost`)).status, 400)
  },
  async refusal(server) {
    for (const body of badBodies) {
      const { status } = await post(server, body)
      expectEqual([body, status >= 400 && status < 500], [body, true])
    }
  },
  async example(server) {
    const [first] = (await (await ask(server, pathOf(server, 'list'))).json()) as readonly Animal[]
    const pet = (await (await ask(server, `${petsPath(server)}/1`)).json()) as Animal
    expectEqual([first?.id, pet.id], [1, 1])
  },
  async same(server, ours) {
    const paths = { list: pathOf(server, 'list'), get: `${petsPath(server)}/1` }
    for (const which of ['list', 'get'] as const) {
      const { headers, body } = await fixedAnswer(`${server.origin}${paths[which]}`)
      // nginx cannot be told to leave this one out.
      delete (headers as Record<string, string>)['server']
      expectEqual({ headers, body }, ours?.[which])
    }
  },
}

const badBodies = [
  '{',
  '{"name":"Rex"}',
  '{"name":" ","categoryId":7}',
  '{"name":"Rex","categoryId":1.5}',
  '{"name":"Rex","categoryId":7,"status":"lost"}',
  JSON.stringify({ name: 'x'.repeat(1_001), categoryId: 7 }),
]

/** The path of the next page, where there is one. */
async function expectPage(
  server: Running,
  path: string,
  expected: readonly Animal[],
): Promise<string | undefined> {
  const response = await ask(server, path)
  expectEqual(await response.json(), expected)
  const next = /<([^>]*)>; *rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  if (next === undefined) return undefined
  const { pathname, search } = new URL(next, server.origin)
  return `${pathname}${search}`
}

function ask({ origin }: Running, path: string): Promise<Response> {
  return fetch(`${origin}${path}`, { headers: { authorization: `Bearer ${benchKey}` } })
}

function post(server: Running, body: string): Promise<Response> {
  const headers = { authorization: `Bearer ${benchKey}`, 'content-type': 'application/json' }
  return fetch(`${server.origin}${petsPath(server)}`, { method: 'POST', headers, body })
}

async function create(server: Running): Promise<number> {
  const response = await post(server, newPet)
  expectEqual(response.status, 201)
  return ((await response.json()) as Animal).id
}

function pathOf({ contender, animals }: Running, work: WorkName): string {
  const requests = contender.requests(work, animals)
  return requests.kind === 'read' ? requests.path : ''
}

function petsPath(server: Running): string {
  return pathOf(server, 'list').replace(/\?.*/, '')
}

function expectEqual(found: unknown, expected: unknown): void {
  if (Bun.deepEquals(found, expected)) return
  const show = (value: unknown) => JSON.stringify(value).slice(0, 300)
  throw new Error(`expected ${show(expected)}, found ${show(found)}`)
}
