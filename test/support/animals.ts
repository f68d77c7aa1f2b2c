import type { KeepAliveClient } from './keep-alive.ts'

const oddNames = [
  'Ünïcødé',
  'e\u0301 and \u00e9',
  '🐕‍🦺 🏳️‍🌈',
  '\u202eright to left',
  'שלום — السلام',
  '\u2028line\u2029paragraph',
  '𝒳 \u{10ffff}',
  '"quoted" \\ back / slash',
  '\u0001\t\n\r\u007f',
  '\ufeffmark \ufffd',
  "'); DROP TABLE pets;--",
]
const statuses = ['', ',"status":"available"', ',"status":"pending"', ',"status":"sold"']
const firstRounded = 2n ** 53n + 1n

/** An animal as JSON text, another one for every number: an odd name, and a category that a double would round. */
export function animalBody(number: number): string {
  const name = JSON.stringify(`${oddNames[number % oddNames.length]} ${number}`)
  const distance = firstRounded + (BigInt(number) * 2n ** 33n + BigInt(number) * 2n)
  const categoryId = number % 2 === 0 ? distance : -distance
  return `{"name":${name},"categoryId":${categoryId}${statuses[number % statuses.length]}}`
}

/** Every animal on every page, by its id, as the text that was sent for it. */
export async function allAnimals(client: KeepAliveClient): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  let path: string | undefined = '/v1/pets?limit=100'
  while (path !== undefined) {
    const outcome = await client.send({ method: 'GET', path })
    if (outcome.kind !== 'answered' || outcome.reply.status !== 200) {
      throw new Error(`Cannot list ${path}: ${JSON.stringify(outcome)}`)
    }
    for (const animal of animalsIn(outcome.reply.text)) {
      if (found.has(animal.id)) throw new Error(`Two animals have id ${animal.id}`)
      found.set(animal.id, animal.body)
    }
    path = /<([^>]+)>; rel="next"/.exec(outcome.reply.headers.get('link') ?? '')?.[1]
  }
  return found
}

/** A Pet as text, taken apart without reading its numbers. */
export function animalOf(text: string): { readonly id: string; readonly body: string } {
  const [, id, rest] = /^\{"id":(\d+),(.*\})$/s.exec(text) ?? []
  if (id === undefined) throw new Error(`Not an animal: ${text}`)
  return { id, body: `{${rest}` }
}

// Inside a name these quotes would stand behind a backslash: it parts nothing but animals.
function animalsIn(page: string) {
  const inside = page.slice(1, -1)
  return inside === '' ? [] : inside.split(/,(?=\{"id":)/).map(animalOf)
}
