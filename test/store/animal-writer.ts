import { openStores } from '../../src/store/open.ts'

/**
 * A program beside the tests: an instance that adds animals to the store in its first argument until its stdin ends, some under
 * a key, alone and several at once. Each that is acknowledged is a line on stdout: its id and its status.
 */
const [url = ''] = process.argv.slice(2)
const stores = await openStores(url, { create: false })
const statuses = ['available', 'pending', 'sold', undefined] as const
let stopping = false
let made = 0

async function add(): Promise<string> {
  const number = ++made
  const status = statuses[number % statuses.length]
  const pet = {
    name: `animal ${number} of ${process.pid}`,
    categoryId: BigInt(number),
    ...(status && { status }),
  }
  if (number % 3 === 0) return `${(await stores.pets.create(pet)).id} ${status}\n`
  const once = { scope: `${process.pid}`, key: `${number}`, at: new Date() }
  const creation = await stores.pets.createOnce(pet, once)
  if (creation.outcome !== 'created') throw new Error(`A new animal was ${creation.outcome}`)
  return `${creation.pet.id} ${status}\n`
}

async function addUntilStopped(): Promise<void> {
  while (!stopping) {
    const together = 1 + Math.floor(Math.random() ** 3 * 6)
    const lines = await Promise.all(Array.from({ length: together }, add))
    await Bun.write(Bun.stdout, lines.join(''))
  }
}

const working = addUntilStopped()
for await (const _ of Bun.stdin.stream()) {
  // Nothing is said there; only its end counts.
}
stopping = true
await working
await stores.close()
