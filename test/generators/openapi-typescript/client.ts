import createClient from 'openapi-fetch'
import type { components, paths } from './petstore'

declare global {
  // Node 22 and Bun have this, but TypeScript 5 does not declare it.
  interface JSON {
    parse(text: string, reviver: (key: string, value: unknown, context: { source: string }) => unknown): unknown
    rawJSON(text: string): unknown
  }
}

const client = createClient<paths>({
  baseUrl: process.env.PETSTORE_URL,
  headers: { Authorization: `Bearer ${process.env.PETSTORE_KEY}` },
  bodySerializer: body => JSON.stringify(body, (key, value) => (key === 'categoryId' ? JSON.rawJSON(value) : value)),
})
client.use({
  async onResponse({ response }) {
    if (response.status === 204) return undefined
    const exact = JSON.parse(await response.text(), (key, value, { source }) =>
      key === 'id' || key === 'categoryId' ? source : value,
    )
    return new Response(JSON.stringify(exact), response)
  },
})

function dataOf<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw error
  return data
}

function print(what: string, { id, categoryId, status, name }: components['schemas']['Pet']) {
  console.log(what, id, categoryId, status, name)
}

const mia = {
  params: { header: { 'Idempotency-Key': crypto.randomUUID() } },
  body: { name: ' Mia 🐈', categoryId: '9223372036854775807', status: 'sold' },
} as const
const created = dataOf(await client.POST('/pets', mia))
print('created', created)
console.log('repeated', dataOf(await client.POST('/pets', mia)).id)
print('fetched', dataOf(await client.GET('/pets/{petId}', { params: { path: { petId: created.id } } })))

const ids: string[] = []
let cursor: string | undefined
do {
  const page = await client.GET('/pets', { params: { query: { limit: 2, cursor } } })
  ids.push(...dataOf(page).map(({ id }) => id))
  cursor = page.response.headers.get('X-Next-Cursor') ?? undefined
} while (cursor)
console.log('listed', ...ids)

const params = { path: { petId: created.id } }
const update = { params: { ...params, query: { status: 'sold' } }, body: { status: null, name: 'New' } } as const
const updated = dataOf(await client.PATCH('/pets/{petId}', update))
console.log('updated', updated.id, updated.categoryId, updated.status ?? 'none', updated.name)
const removed = await client.DELETE('/pets/{petId}', { params })
const removedAgain = await client.DELETE('/pets/{petId}', { params })
console.log('removed', removed.response.status, removedAgain.response.status)

for (const { response, error } of [
  await client.POST('/pets', { body: { name: '\uFEFF', categoryId: '0' } }),
  await client.GET('/pets', { params: { query: { cursor: 'wrong' } } }),
  await client.GET('/pets', { headers: { Authorization: 'Bearer wrong' } }),
  await client.GET('/pets/{petId}', { params: { path: { petId: '404' } } }),
]) {
  console.log(response.status, error?.code)
}
