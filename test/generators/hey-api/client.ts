import { createPet, getPet, listPets, type Pet } from './petstore'
import { client } from './petstore/client.gen'

declare global {
  // Node 22 and Bun have this, but TypeScript 5 does not declare it.
  interface JSON {
    parse(text: string, reviver: (key: string, value: unknown, context: { source: string }) => unknown): unknown
    rawJSON(text: string): unknown
  }
}

client.setConfig({
  baseUrl: process.env.PETSTORE_URL,
  auth: process.env.PETSTORE_KEY,
  bodySerializer: body =>
    JSON.stringify(body, (_, value) => (typeof value === 'bigint' ? JSON.rawJSON(`${value}`) : value)),
})
// The generated transformers read these strings as bigint.
client.interceptors.response.use(async response => {
  const exact = JSON.parse(await response.text(), (_, value, { source }) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) ? source : value,
  )
  return new Response(JSON.stringify(exact), response)
})

function print(what: string, { id, categoryId, status, name }: Pet) {
  console.log(`${what} ${id} ${categoryId} ${status} ${name}`)
}

const mia = {
  headers: { 'Idempotency-Key': crypto.randomUUID() },
  body: { name: ' Mia 🐈', categoryId: 9223372036854775807n, status: 'sold' },
  throwOnError: true,
} as const
const { data: created } = await createPet(mia)
print('created', created)
console.log(`repeated ${(await createPet(mia)).data.id}`)
print('fetched', (await getPet({ path: { petId: created.id }, throwOnError: true })).data)

const ids: bigint[] = []
let cursor: string | undefined
do {
  const { data, response } = await listPets({ query: { limit: 2, cursor }, throwOnError: true })
  ids.push(...data.map(({ id }) => id))
  cursor = response.headers.get('X-Next-Cursor') ?? undefined
} while (cursor)
console.log(`listed ${ids.join(' ')}`)

for (const { response, error } of [
  await createPet({ body: { name: '\uFEFF', categoryId: 0n } }),
  await listPets({ query: { cursor: 'wrong' } }),
  await listPets({ auth: 'wrong' }),
  await getPet({ path: { petId: 404n } }),
]) {
  console.log(response?.status, error?.code)
}
