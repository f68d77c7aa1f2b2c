import { describe, expect, test } from 'bun:test'
import * as client from '../../src/client/index.ts'
import { keepAnimals, type Service, startService } from '../http/service.ts'
import { engines } from '../support/engines.ts'

const rex = { name: 'Rex', categoryId: 7n, status: 'available' } as const

function petsAt(service: Service, options: Partial<client.ClientOptions> = {}): client.Pets {
  const base = { baseUrl: `${service.origin}/v1`, apiKey: service.key }
  return new client.PetstoreClient({ ...base, ...options } as client.ClientOptions).pets
}

/** Loses the first two responses. */
function lossyFetch() {
  let attempts = 0
  const lossy: client.Fetch = async (url, init) => {
    const response = await fetch(url, init)
    if (++attempts < 3) throw new TypeError('The connection was closed')
    return response
  }
  return { fetch: lossy, sent: () => attempts }
}

describe.each(engines)('on %s', engine => {
  test('animals come back exactly as they were added, with ids above 2^53, for any page size', async () => {
    await using service = await startService({ engine })
    const kept: client.Pet = { id: 2n ** 53n, name: 'Before', categoryId: 1n, status: 'sold' }
    await keepAnimals(service, [kept])
    const pets = petsAt(service)
    const categories = [-(2n ** 63n), -(2n ** 53n) - 1n, 0n, 2n ** 53n + 1n, 2n ** 63n - 1n]
    const names = ['  Rex  ', '犬 😀', '\u001b[31m\n', '"\\"', '{"id":9223372036854775807}']
    const added = [kept]
    for (const [index, name] of names.entries()) {
      const newPet = { name, categoryId: categories[index] ?? 0n }
      const pet = await pets.create(newPet)
      expect(pet).toStrictEqual({ id: 2n ** 53n + 1n + BigInt(index), ...newPet })
      added.push(pet)
    }
    for (const limit of [undefined, 1, 4, 6, 100]) {
      expect(await Array.fromAsync(pets.list({ limit }))).toStrictEqual(added)
    }
    expect(await pets.list({ status: 'sold' }).page()).toStrictEqual({ pets: [kept] })
    const { nextCursor } = await pets.list({ limit: 4 }).page()
    expect(await Array.fromAsync(pets.list({ cursor: nextCursor }))).toStrictEqual(added.slice(4))
    expect(await pets.get(2n ** 53n + 1n)).toStrictEqual(added[1] as client.Pet)
  })

  test('a creation whose responses are lost is retried, and adds one animal', async () => {
    await using service = await startService({ engine })
    const { fetch, sent } = lossyFetch()
    const pet = await petsAt(service, { fetch }).create(rex)
    expect(pet).toEqual({ ...rex, id: 1n })
    expect(sent()).toBe(3)
    expect(await Array.fromAsync(petsAt(service).list())).toEqual([pet])
  })

  test('a change whose response is lost is retried, or its outcome is unknown, and it takes effect', async () => {
    await using service = await startService({ engine })
    const lossy = () => petsAt(service, { fetch: lossyFetch().fetch })
    await petsAt(service).create(rex)
    const sold: client.Pet = { id: 1n, ...rex, status: 'sold' }
    expect(await lossy().update(1n, { status: 'sold' })).toEqual(sold)
    const unknown = await lossy()
      .update(1n, { status: null }, { ifStatus: 'sold' })
      .catch(error => error)
    expect(unknown).toBeInstanceOf(client.OutcomeUnknownError)
    expect(await petsAt(service).get(1n)).toEqual({ id: 1n, name: 'Rex', categoryId: 7n })
    const refused = await petsAt(service)
      .remove(1n, { ifStatus: 'sold' })
      .catch(error => error)
    expect(refused).toMatchObject({ name: 'RefusedError', status: 409, code: 'status_changed' })
    expect(await lossy().remove(1n)).toBeUndefined()
    expect(await Array.fromAsync(petsAt(service).list())).toEqual([])
  })
})
