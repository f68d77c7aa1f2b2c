import { type Animal, animalAt, animalsAfter } from './catalogue.ts'
import type { CheckName, FixedResponse, PetstoreResponses } from './contenders.ts'
import { benchAuthorization, newPet } from './load.ts'
import type { Server } from './start.ts'
import { deepAfter, listPath, petPath } from './workloads.ts'

/** Throws unless a server responds as its contender claims: only correct responses are timed. */
export async function verify(server: Server, ours?: PetstoreResponses): Promise<void> {
  for (const name of server.contender.checks) {
    try {
      await checks[name](server, ours)
    } catch (error) {
      throw new Error(`failed the check "${name}": ${(error as Error).message}`)
    }
  }
}

const checks: Record<CheckName, (server: Server, ours?: PetstoreResponses) => Promise<void>> = {
  async bytes(server) {
    const response = await send(server, server.contender.paths.list)
    expectEqual(await response.text(), JSON.stringify(animalsAfter(0, 20)))
  },
  async pages(server) {
    const { contender, animals } = server
    const second = await expectPage(server, contender.paths.list, animalsAfter(0, 20))
    const third = await expectPage(server, second ?? 'missing', animalsAfter(20, 20))
    await expectPage(server, third ?? 'missing', animalsAfter(40, 20))
    if (!contender.workloads.includes('deep')) return
    const path = listPath(contender.paths, 'deep', animals)
    await expectPage(server, path, animalsAfter(deepAfter(animals), 20))
  },
  async filter(server) {
    const path = listPath(server.contender.paths, 'filtered', server.animals)
    await expectPage(server, path, animalsAfter(0, 100, 'available'))
  },
  async get(server) {
    const { pets } = server.contender.paths
    const id = server.animals - 1
    const response = await send(server, `${pets}/${id}`)
    expectEqual(await response.json(), animalAt(id))
    expectEqual((await send(server, `${pets}/999999999`)).status, 404)
  },
  async create(server) {
    for (const id of [server.animals + 1, server.animals + 2]) {
      const created = await post(server, newPet)
      expectEqual(created.status, 201)
      const pet = { ...JSON.parse(newPet), id }
      expectEqual(await created.json(), pet)
      expectEqual(await (await send(server, `${server.contender.paths.pets}/${id}`)).json(), pet)
    }
  },
  async once(server) {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const [first, second] = [await post(server, newPet, headers), await post(server, newPet, headers)]
    expectEqual([first.status, second.status], [201, 201])
    expectEqual(await second.json(), await first.json())
  },
  async key({ origin, contender }) {
    const url = `${origin}${contender.paths.list}`
    expectEqual((await fetch(url)).status, 401)
    const headers = { authorization: 'Bearer another-key-0123456789' }
    expectEqual((await fetch(url, { headers })).status, 401)
  },
  async validation(server) {
    const { pets } = server.contender.paths
    for (const body of invalidBodies) expectEqual([body, (await post(server, body)).status], [body, 400])
    expectEqual((await send(server, `${pets}?limit=101`)).status, 400)
    expectEqual((await send(server, `${pets}?status=lost`)).status, 400)
  },
  async same(server, ours) {
    const { pets, list } = server.contender.paths
    for (const [name, path] of [['list', list] as const, ['get', `${pets}/1`] as const]) {
      const { headers, body } = await fixedResponse(`${server.origin}${path}`)
      // nginx always sends this one.
      const { server: _server, ...others } = headers
      expectEqual({ headers: others, body }, ours?.[name])
    }
  },
  async mock(server) {
    const { pets, list } = server.contender.paths
    const [first] = (await (await send(server, list)).json()) as readonly Animal[]
    const pet = (await (await send(server, `${pets}/1`)).json()) as Animal
    expectEqual([first?.id, pet.id], [1, 1])
    expectEqual((await fetch(`${server.origin}${list}`)).status, 401)
    for (const body of invalidBodies) {
      const { status } = await post(server, body)
      expectEqual([body, status >= 400 && status < 500], [body, true])
    }
  },
  records: checkRecords,
}

/** PocketBase's ids have 15 characters, and its pages have no links. */
async function checkRecords(server: Server): Promise<void> {
  const { pets, pet = '', list } = server.contender.paths
  const petOf = ({ id, name, categoryId, status }: RecordOfPet) => ({ id, name, categoryId, status })
  const expectRecords = async (path: string, expected: readonly Animal[]) => {
    const { items } = (await (await send(server, path)).json()) as { items: readonly RecordOfPet[] }
    expectEqual(items.map(petOf), expected.map(recordOf))
  }
  await expectRecords(list, animalsAfter(0, 20))
  await expectRecords(`${list}&page=2`, animalsAfter(20, 20))
  await expectRecords(listPath(server.contender.paths, 'filtered', server.animals), animalsAfter(0, 100, 'available'))
  const id = server.animals - 1
  expectEqual(petOf((await (await send(server, petPath(pet, id))).json()) as RecordOfPet), recordOf(animalAt(id)))
  expectEqual((await send(server, petPath(pet, 999_999_999))).status, 404)
  const created = (await (await post(server, newPet)).json()) as RecordOfPet
  expectEqual(petOf(created), { ...JSON.parse(newPet), id: created.id })
  expectEqual(await (await send(server, `${pets}/${created.id}`)).json(), created)
  expectEqual((await fetch(`${server.origin}${list}`)).status, 403)
  for (const body of invalidBodies.filter(body => body !== withoutCategory)) {
    expectEqual([body, (await post(server, body)).status], [body, 400])
  }
}

interface RecordOfPet extends Omit<Animal, 'id'> {
  readonly id: string
}

function recordOf(animal: Animal): RecordOfPet {
  return { ...animal, id: petPath('%015d', animal.id) }
}

const withoutCategory = '{"name":"Rex"}'
const invalidBodies = [
  '{',
  withoutCategory,
  '{"name":" ","categoryId":7}',
  '{"name":"Rex","categoryId":1.5}',
  '{"name":"Rex","categoryId":7,"status":"lost"}',
  JSON.stringify({ name: 'x'.repeat(1_001), categoryId: 7 }),
]

/** Returns the path of the next page, if one exists. */
async function expectPage(server: Server, path: string, expected: readonly Animal[]): Promise<string | undefined> {
  const response = await send(server, path)
  expectEqual(await response.json(), expected)
  const next = /<([^>]*)>; *rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  if (next === undefined) return undefined
  const { pathname, search } = new URL(next, server.origin)
  return `${pathname}${search}`
}

function send({ origin, authorization }: Server, path: string): Promise<Response> {
  return fetch(`${origin}${path}`, { headers: { authorization } })
}

function post({ origin, authorization, contender }: Server, body: string, added = {}): Promise<Response> {
  const headers = { authorization, 'content-type': 'application/json', ...added }
  return fetch(`${origin}${contender.paths.pets}`, { method: 'POST', headers, body })
}

function expectEqual(found: unknown, expected: unknown): void {
  if (Bun.deepEquals(found, expected)) return
  const show = (value: unknown) => JSON.stringify(value)?.slice(0, 300)
  throw new Error(`expected ${show(expected)}, got ${show(found)}`)
}

/** The petstore's responses, for the servers that send them from memory. */
export async function captureResponses({ origin }: Server, petId: number): Promise<PetstoreResponses> {
  return {
    list: await fixedResponse(`${origin}/v1/pets`),
    get: await fixedResponse(`${origin}/v1/pets/${petId}`),
    openapi: (await fixedResponse(`${origin}/openapi.json`)).body,
  }
}

/** Every server sets these headers by itself. */
const serverHeaders = ['date', 'content-length', 'connection', 'keep-alive', 'transfer-encoding']

async function fixedResponse(url: string): Promise<FixedResponse> {
  const response = await fetch(url, { headers: { authorization: benchAuthorization } })
  if (!response.ok) throw new Error(`GET ${url} returned ${response.status}`)
  const headers = [...response.headers].filter(([name]) => !serverHeaders.includes(name))
  return { headers: Object.fromEntries(headers), body: await response.text() }
}
