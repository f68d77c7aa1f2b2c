import { Configuration, ModelErrorFromJSON, type Pet, PetsApi, ResponseError } from './petstore'

declare global {
  // Node 22 and Bun have this, but TypeScript 5 does not declare it.
  interface JSON {
    parse(text: string, reviver: (key: string, value: unknown, context: { source: string }) => unknown): unknown
    rawJSON(text: string): unknown
  }
  interface BigInt {
    toJSON(): unknown
  }
}

BigInt.prototype.toJSON = function () {
  return JSON.rawJSON(this.toString())
}

async function exactJson(response: Response) {
  return JSON.parse(await response.text(), (key, value, { source }) =>
    key === 'id' || key === 'categoryId' ? BigInt(source) : value,
  )
}

const pets = new PetsApi(
  new Configuration({
    basePath: process.env.PETSTORE_URL,
    accessToken: process.env.PETSTORE_KEY,
    middleware: [{ post: async ({ response }) => Object.assign(response, { json: () => exactJson(response) }) }],
  }),
)

function print(what: string, { id, categoryId, status, name }: Pet) {
  console.log(`${what} ${id} ${categoryId} ${status} ${name}`)
}

const mia = {
  idempotencyKey: crypto.randomUUID(),
  newPet: { name: ' Mia 🐈', categoryId: 9223372036854775807n, status: 'sold' },
} as const
const created = await pets.createPet(mia)
print('created', created)
console.log(`repeated ${(await pets.createPet(mia)).id}`)
print('fetched', await pets.getPet({ petId: created.id }))

const ids: bigint[] = []
let cursor: string | undefined
do {
  const page = await pets.listPetsRaw({ limit: 2, cursor })
  ids.push(...(await page.value()).map(({ id }) => id))
  cursor = page.raw.headers.get('X-Next-Cursor') ?? undefined
} while (cursor)
console.log(`listed ${ids.join(' ')}`)

for (const failing of [
  () => pets.createPet({ newPet: { name: '\uFEFF', categoryId: 0n } }),
  () => pets.listPets({ cursor: 'wrong' }),
  () => pets.listPets({}, { headers: { Authorization: 'Bearer wrong' } }),
  () => pets.getPet({ petId: 404n }),
]) {
  try {
    await failing()
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error
    const { response } = error
    console.log(response.status, ModelErrorFromJSON(await response.json()).code)
  }
}
