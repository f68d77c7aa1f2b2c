import { animalAt, animalsAfter } from './catalogue.ts'
import { type FixedResponse, type Given, petPath, petsPath } from './contenders.ts'
import { benchAuthorization, fixedPetId, newPet, type Target } from './load.ts'

/** Throws unless a server gives the right responses: only these are timed. */
export async function verify(target: Target, { fixed }: Given): Promise<void> {
  const { name, responses } = target.contender
  const check = responses === 'fixed' ? checkFixed(target, fixed) : checkPetstore(target)
  await check.catch((error: Error) => {
    throw new Error(`${name} gave a wrong response: ${error.message}`)
  })
}

const invalidBodies = [
  '{',
  '{"name":"Rex"}',
  '{"name":" ","categoryId":7}',
  '{"name":"Rex","categoryId":1.5}',
  '{"name":"Rex","categoryId":7,"status":"lost"}',
  JSON.stringify({ name: 'x'.repeat(1_001), categoryId: 7 }),
]

async function checkPetstore({ origin, animals, contender: { cursor } }: Target): Promise<void> {
  const first = await send(origin, petsPath)
  expectEqual(await first.text(), JSON.stringify(animalsAfter(0, 20)))
  const second = await send(origin, nextPath(first))
  expectEqual(await second.json(), animalsAfter(20, 20))
  expectEqual(await read(origin, nextPath(second)), animalsAfter(40, 20))
  const sold = animalsAfter(500, 300).filter(({ status }) => status === 'sold')
  const filtered = `${petsPath}?limit=100&status=sold&cursor=${cursor(500, 'sold')}`
  expectEqual(await read(origin, filtered), sold)
  expectEqual(await read(origin, petPath(animals)), animalAt(animals))
  for (const id of [animals + 1, animals + 2]) {
    const created = await post(origin, newPet)
    expectEqual([created.status, await created.json()], [201, { ...JSON.parse(newPet), id }])
    expectEqual(await read(origin, petPath(id)), { ...JSON.parse(newPet), id })
  }
  expectEqual((await fetch(`${origin}${petsPath}`)).status, 401)
  expectEqual((await send(origin, petsPath, 'Bearer another-key-0123456789')).status, 401)
  expectEqual((await send(origin, petPath(999_999_999))).status, 404)
  for (const body of invalidBodies) expectEqual([body, (await post(origin, body)).status], [body, 400])
  expectEqual((await send(origin, `${petsPath}?limit=101`)).status, 400)
  expectEqual((await send(origin, `${petsPath}?status=lost`)).status, 400)
}

async function checkFixed({ origin }: Target, fixed: Given['fixed']): Promise<void> {
  expectEqual(await captureResponses(origin), fixed)
}

function nextPath({ headers }: Response): string {
  return /<([^>]*)>; *rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? '/missing'
}

function send(origin: string, path: string, authorization = benchAuthorization): Promise<Response> {
  return fetch(`${origin}${path}`, { headers: { authorization } })
}

async function read(origin: string, path: string): Promise<unknown> {
  return (await send(origin, path)).json()
}

function post(origin: string, body: string): Promise<Response> {
  const headers = { authorization: benchAuthorization, 'content-type': 'application/json' }
  return fetch(`${origin}${petsPath}`, { method: 'POST', headers, body })
}

function expectEqual(found: unknown, expected: unknown): void {
  if (Bun.deepEquals(found, expected)) return
  const show = (value: unknown) => JSON.stringify(value)?.slice(0, 300)
  throw new Error(`expected ${show(expected)}, got ${show(found)}`)
}

/** Every server sets these headers by itself. */
const serverHeaders = ['date', 'content-length', 'connection', 'keep-alive', 'transfer-encoding']

/** The responses that the fixed-bytes server sends. */
export async function captureResponses(origin: string): Promise<NonNullable<Given['fixed']>> {
  const capture = async (path: string): Promise<FixedResponse> => {
    const response = await send(origin, path)
    if (!response.ok) throw new Error(`GET ${path} returned ${response.status}`)
    const headers = [...response.headers].filter(([name]) => !serverHeaders.includes(name))
    return { headers: Object.fromEntries(headers), body: await response.text() }
  }
  return { list: await capture(petsPath), get: await capture(petPath(fixedPetId)) }
}
