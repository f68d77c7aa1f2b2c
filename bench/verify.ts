import { type Animal, animalAt, animalsAfter } from './catalogue.ts'
import { type FixedResponse, type Given, petPath } from './contenders.ts'
import { benchAuthorization, newPet, type Target } from './load.ts'

/** Throws unless a server gives the right responses: only these are timed. */
export async function verify(target: Target, { fixed }: Given): Promise<void> {
  const { name, responses } = target.contender
  const check = { petstore: checkPetstore, fixed: checkFixed, pocketbase: checkPocketbase }[responses]
  await check(target, fixed).catch((error: Error) => {
    throw new Error(`${name} gave a wrong response: ${error.message}`)
  })
}

const firstAvailable = animalsAfter(0, 300).filter(({ status }) => status === 'available')
const withoutCategory = '{"name":"Rex"}'
const invalidBodies = [
  '{',
  '{"name":" ","categoryId":7}',
  '{"name":"Rex","categoryId":1.5}',
  '{"name":"Rex","categoryId":7,"status":"lost"}',
  JSON.stringify({ name: 'x'.repeat(1_001), categoryId: 7 }),
]

async function checkPetstore(target: Target): Promise<void> {
  const { animals, contender } = target
  const { paths } = contender
  const first = await send(target, paths.list)
  expectEqual(await first.text(), JSON.stringify(animalsAfter(0, 20)))
  const second = await send(target, nextPath(first))
  expectEqual(await second.json(), animalsAfter(20, 20))
  expectEqual(await read(target, nextPath(second)), animalsAfter(40, 20))
  expectEqual(await read(target, paths.filtered), firstAvailable)
  expectEqual(await read(target, petPath(paths, animals)), animalAt(animals))
  for (const id of [animals + 1, animals + 2]) {
    const created = await post(target, newPet)
    expectEqual([created.status, await created.json()], [201, { ...JSON.parse(newPet), id }])
    expectEqual(await read(target, petPath(paths, id)), { ...JSON.parse(newPet), id })
  }
  await expectErrors(target, 401, [...invalidBodies, withoutCategory])
  expectEqual((await send(target, `${paths.pets}?limit=101`)).status, 400)
  expectEqual((await send(target, `${paths.pets}?status=lost`)).status, 400)
}

async function checkFixed({ contender: { paths }, origin }: Target, fixed: Given['fixed']): Promise<void> {
  expectEqual(await captureResponse(`${origin}${paths.list}`), fixed?.list)
  expectEqual(await captureResponse(`${origin}${petPath(paths, 1)}`), fixed?.get)
}

/** PocketBase's ids have 15 characters, its pages have no links, and it takes 0 for a missing categoryId. */
async function checkPocketbase(target: Target): Promise<void> {
  const { paths } = target.contender
  const petOf = ({ id, name, categoryId, status }: Animal) => ({ id, name, categoryId, status })
  const recordOf = (animal: Animal) => ({ ...animal, id: String(animal.id).padStart(15, '0') })
  const readPage = async (path: string) => (await read<{ items: Animal[] }>(target, path)).items.map(petOf)
  expectEqual(await readPage(paths.list), animalsAfter(0, 20).map(recordOf))
  expectEqual(await readPage(`${paths.list}&page=2`), animalsAfter(20, 20).map(recordOf))
  expectEqual(await readPage(paths.filtered), firstAvailable.map(recordOf))
  const last = await read<Animal>(target, petPath(paths, target.animals))
  expectEqual(petOf(last), recordOf(animalAt(target.animals)))
  const created = (await (await post(target, newPet)).json()) as Animal
  expectEqual(petOf(created), { ...JSON.parse(newPet), id: created.id })
  expectEqual(await read(target, `${paths.pets}/${created.id}`), created)
  await expectErrors(target, 403, invalidBodies)
}

async function expectErrors(target: Target, withoutKey: number, bodies: readonly string[]): Promise<void> {
  const { paths } = target.contender
  const withAnotherKey = { ...target, authorization: 'Bearer another-key-0123456789' }
  expectEqual((await fetch(`${target.origin}${paths.list}`)).status, withoutKey)
  expectEqual((await send(withAnotherKey, paths.list)).status, withoutKey)
  expectEqual((await send(target, petPath(paths, 999_999_999))).status, 404)
  for (const body of bodies) expectEqual([body, (await post(target, body)).status], [body, 400])
}

function nextPath({ headers }: Response): string {
  return /<([^>]*)>; *rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? '/missing'
}

function send({ origin, authorization }: Target, path: string): Promise<Response> {
  return fetch(`${origin}${path}`, { headers: { authorization } })
}

async function read<T>(target: Target, path: string): Promise<T> {
  return (await send(target, path)).json() as Promise<T>
}

function post({ origin, authorization, contender }: Target, body: string): Promise<Response> {
  const headers = { authorization, 'content-type': 'application/json' }
  return fetch(`${origin}${contender.paths.pets}`, { method: 'POST', headers, body })
}

function expectEqual(found: unknown, expected: unknown): void {
  if (Bun.deepEquals(found, expected)) return
  const show = (value: unknown) => JSON.stringify(value)?.slice(0, 300)
  throw new Error(`expected ${show(expected)}, got ${show(found)}`)
}

/** Every server sets these headers by itself. */
const serverHeaders = ['date', 'content-length', 'connection', 'keep-alive', 'transfer-encoding']

export async function captureResponse(url: string): Promise<FixedResponse> {
  const response = await fetch(url, { headers: { authorization: benchAuthorization } })
  if (!response.ok) throw new Error(`GET ${url} returned ${response.status}`)
  const headers = [...response.headers].filter(([name]) => !serverHeaders.includes(name))
  return { headers: Object.fromEntries(headers), body: await response.text() }
}
