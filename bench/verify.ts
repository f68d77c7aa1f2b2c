import { animalAt, animalsAfter, newPet, petsPath } from './loads.ts'
import { authorization, type Server } from './server.ts'

/** Throws unless a server gives the right responses: only these are timed. */
export async function verify(server: Server): Promise<void> {
  await check(server).catch((error: Error) => {
    throw new Error(`${server.contender.name} gave a wrong response: ${error.message}`)
  })
}

const headers = { authorization, 'content-type': 'application/json' }
const invalidBodies = [
  '{',
  '{"name":"Rex"}',
  '{"name":" ","categoryId":7}',
  '{"name":"Rex","categoryId":1.5}',
  '{"name":"Rex","categoryId":7,"status":"lost"}',
  JSON.stringify({ name: 'x'.repeat(1_001), categoryId: 7 }),
]

async function check({ origin, contender: { animals, cursor, isFixed } }: Server): Promise<void> {
  const get = (path: string, init = { headers }) => fetch(`${origin}${path}`, init)
  const read = async (path: string) => (await get(path)).json()
  const post = (body: string) => fetch(`${origin}${petsPath}`, { method: 'POST', headers, body })

  const first = await get(petsPath)
  expectEqual(await first.text(), JSON.stringify(animalsAfter(0, 20)))
  if (isFixed) return expectEqual(await read(`${petsPath}/555555`), animalAt(555_555))
  const second = await get(nextPath(first))
  expectEqual(await second.json(), animalsAfter(20, 20))
  expectEqual(await read(nextPath(second)), animalsAfter(40, 20))
  const sold = animalsAfter(500, 300).filter(({ status }) => status === 'sold')
  expectEqual(await read(`${petsPath}?limit=100&status=sold&cursor=${cursor(500, 'sold')}`), sold)
  expectEqual(await read(`${petsPath}/${animals}`), animalAt(animals))

  for (const id of [animals + 1, animals + 2]) {
    const created = await post(newPet)
    expectEqual([created.status, await created.json()], [201, { ...JSON.parse(newPet), id }])
    expectEqual(await read(`${petsPath}/${id}`), { ...JSON.parse(newPet), id })
  }

  const otherKey = { headers: { ...headers, authorization: 'Bearer another-key-0123456789' } }
  expectEqual((await fetch(`${origin}${petsPath}`)).status, 401)
  expectEqual((await get(petsPath, otherKey)).status, 401)
  expectEqual((await get(`${petsPath}/999999999`)).status, 404)
  for (const body of invalidBodies) expectEqual([body, (await post(body)).status], [body, 400])
  for (const query of ['limit=101', 'limit=ten', 'status=lost', 'cursor=-']) {
    expectEqual([query, (await get(`${petsPath}?${query}`)).status], [query, 400])
  }
}

function nextPath({ headers }: Response): string {
  return /<([^>]*)>; *rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? '/missing'
}

function expectEqual(found: unknown, expected: unknown): void {
  if (Bun.deepEquals(found, expected)) return
  const show = (value: unknown) => JSON.stringify(value)?.slice(0, 300)
  throw new Error(`expected ${show(expected)}, got ${show(found)}`)
}
