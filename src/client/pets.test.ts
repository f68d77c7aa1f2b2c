import { describe, expect, test } from 'bun:test'
import { errorAnswer, startScriptedServer } from '../../test/support/scripted-server.ts'
import { PetstoreClient, UnexpectedResponseError } from './index.ts'

const apiKey = 'key-that-nobody-may-see'

function petsAt({ url }: { url: string }) {
  return new PetstoreClient({ baseUrl: url, apiKey, backoffMs: 1 }).pets
}

function page(ids: readonly number[], next?: string): Response {
  const headers = next === undefined ? {} : { link: `<${next}>; rel="next"` }
  return Response.json(
    ids.map(id => ({ id, name: 'Rex', categoryId: 7 })),
    { headers },
  )
}

async function idsOf(pets: AsyncIterable<{ id: bigint }>): Promise<bigint[]> {
  const ids: bigint[] = []
  for await (const { id } of pets) ids.push(id)
  return ids
}

describe('a walk', () => {
  test('follows relative links as they stand, over empty pages too', async () => {
    await using server = startScriptedServer(
      page([1, 2], '/v1/pets?cursor=a%2Fb&x=1'),
      page([], '?cursor=c'),
      page([3]),
    )
    expect(await idsOf(petsAt(server).list({ limit: 2, status: 'sold' }))).toEqual([1n, 2n, 3n])
    expect(server.requests.map(({ path }) => path)).toEqual([
      '/v1/pets?limit=2&status=sold',
      '/v1/pets?cursor=a%2Fb&x=1',
      '/v1/pets?cursor=c',
    ])
  })

  test('follows absolute links to the same server', async () => {
    await using server = startScriptedServer(() => page([1], `${server.origin}/elsewhere`), page([2]))
    expect(await idsOf(petsAt(server).list())).toEqual([1n, 2n])
  })

  test('asks for nothing before it begins, and for no page beyond the one where it ends', async () => {
    await using server = startScriptedServer(page([1, 2], '?cursor=a'), page([3]))
    const list = petsAt(server).list()
    await Bun.sleep(10)
    expect(server.requests).toHaveLength(0)
    for await (const pet of list) if (pet.id === 2n) break
    expect(server.requests).toHaveLength(1)
  })

  test('begins anew each time', async () => {
    await using server = startScriptedServer(page([1]))
    const list = petsAt(server).list()
    expect(await idsOf(list)).toEqual(await idsOf(list))
    expect(server.requests).toHaveLength(2)
  })

  test('retries a page in its middle, and loses nothing', async () => {
    await using server = startScriptedServer(page([1], '?cursor=a'), errorAnswer(503, 'a'), page([2]))
    expect(await idsOf(petsAt(server).list())).toEqual([1n, 2n])
  })

  test('ends with an abort', async () => {
    await using server = startScriptedServer(page([1], '?cursor=a'), page([2], '?cursor=b'))
    const controller = new AbortController()
    const walk = async () => {
      for await (const pet of petsAt(server).list({ signal: controller.signal })) {
        if (pet.id === 2n) controller.abort(new Error('enough'))
      }
    }
    expect(await walk().catch(error => error)).toMatchObject({ message: 'enough' })
  })
})

test('page by page, each page leads to the next, and the last one to none', async () => {
  await using server = startScriptedServer(page([1], '?cursor=a'), page([2]))
  const first = await petsAt(server).list({ limit: 1 }).page()
  expect(first.pets).toEqual([{ id: 1n, name: 'Rex', categoryId: 7n }])
  const second = await first.next?.()
  expect(second).toEqual({ pets: [{ id: 2n, name: 'Rex', categoryId: 7n }] })
})

test('pages can be iterated', async () => {
  await using server = startScriptedServer(page([1, 2], '?cursor=a'), page([3]))
  const sizes: number[] = []
  for await (const { pets } of petsAt(server).list().pages()) sizes.push(pets.length)
  expect(sizes).toEqual([2, 1])
})

describe('a next link', () => {
  test('to another server is refused before the key gets there', async () => {
    await using elsewhere = startScriptedServer(page([2]))
    await using server = startScriptedServer(page([1], `${elsewhere.url}/pets?cursor=a`))
    const error = await petsAt(server)
      .list()
      .page()
      .catch(error => error)
    expect(error).toBeInstanceOf(UnexpectedResponseError)
    expect(error.message).toEndWith(`leads to ${elsewhere.origin}: another server must not get the API key`)
    expect(elsewhere.requests).toHaveLength(0)
  })

  test.each(['//other.example/v1/pets', 'https://127.0.0.1/v1/pets', 'data:application/json,[]'])(
    '%s leads elsewhere',
    async next => {
      await using server = startScriptedServer(page([1], next))
      expect(
        await petsAt(server)
          .list()
          .page()
          .catch(error => error),
      ).toBeInstanceOf(UnexpectedResponseError)
    },
  )

  test('with the key in it is neither followed nor shown', async () => {
    await using server = startScriptedServer(page([1], `?cursor=a&key=${apiKey}`), page([2]))
    const error = await petsAt(server)
      .list()
      .page()
      .catch(error => error)
    expect(error).toBeInstanceOf(UnexpectedResponseError)
    expect(error.message).toEndWith('holds the API key')
    expect(error.message).not.toContain(apiKey)
  })

  test('to its own page would never end', async () => {
    await using server = startScriptedServer(page([1], '/v1/pets?limit=1'))
    const error = await petsAt(server)
      .list({ limit: 1 })
      .page()
      .catch(error => error)
    expect(error).toBeInstanceOf(UnexpectedResponseError)
  })
})

describe('what cannot be sent', () => {
  test.each([
    ['an id that is no integer', (pets: PetstoreClient['pets']) => pets.get(1.5)],
    ['an id beyond 64 bits', (pets: PetstoreClient['pets']) => pets.get(2n ** 63n)],
    [
      'a category that was rounded',
      (pets: PetstoreClient['pets']) => pets.create({ name: 'Rex', categoryId: 2 ** 60 }),
    ],
    [
      'a key with a line break',
      (pets: PetstoreClient['pets']) =>
        pets.create({ name: 'Rex', categoryId: 7 }, { idempotencyKey: 'a\nb' }),
    ],
    ['a time of nothing', (pets: PetstoreClient['pets']) => pets.list({ timeoutMs: 0 }).page()],
  ])('is a TypeError, and nothing is sent: %s', async (_what, call) => {
    await using server = startScriptedServer(page([]))
    expect(await call(petsAt(server)).catch(error => error)).toBeInstanceOf(TypeError)
    expect(server.requests).toHaveLength(0)
  })
})
