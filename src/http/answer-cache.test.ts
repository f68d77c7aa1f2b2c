import { beforeEach, describe, expect, test } from 'bun:test'
import type { Awaitable, PetStore } from '../store.ts'
import type { Answer } from './answer.ts'
import { type AnswerCache, createAnswerCache } from './answer-cache.ts'

let version: unknown
let reads: string[]
let served: boolean[]
let cache: AnswerCache

beforeEach(() => {
  version = 1n
  reads = []
  served = []
  cache = cacheOf(10_000)
})

function cacheOf(bytesMax: number, fullMs?: number): AnswerCache {
  const pets = { version: () => version } as PetStore
  const told = (fromCache: boolean) => served.push(fromCache)
  return createAnswerCache({ pets, bytesMax, ...(fullMs && { fullMs }), served: told })
}

const ask = (question: string, answer: Awaitable<Answer> = { status: 200, body: `${question}@${version}` }) =>
  cache.answer(question, () => {
    reads.push(question)
    return answer
  })

describe('an answer', () => {
  test('is read once for each version of the store', () => {
    expect([ask('a'), ask('a')]).toMatchObject([{ body: 'a@1' }, { body: 'a@1' }])
    version = 2n
    expect([ask('a'), ask('a')]).toMatchObject([{ body: 'a@2' }, { body: 'a@2' }])
    expect(reads).toEqual(['a', 'a'])
    expect(served).toEqual([false, true, false, true])
  })

  test('is kept for its own question only', () => {
    ask('a')
    expect(ask('b')).toMatchObject({ body: 'b@1' })
  })

  test('is not taken back from an earlier version that comes again', () => {
    ask('a')
    version = 2n
    ask('b')
    version = 1n
    ask('a')
    expect(reads).toEqual(['a', 'b', 'a'])
  })

  test('that comes later is kept', async () => {
    await ask('a', Promise.resolve({ status: 200, body: 'later' }))
    expect(ask('a')).toMatchObject({ body: 'later' })
  })

  test('that comes when its version has passed is not kept', async () => {
    const { promise, resolve } = Promise.withResolvers<Answer>()
    const late = ask('a', promise)
    version = 2n
    ask('b')
    resolve({ status: 200, body: 'of version 1' })
    expect(await late).toMatchObject({ body: 'of version 1' })
    expect(ask('a')).toMatchObject({ body: 'a@2' })
  })
})

describe('is read each time', () => {
  test.each<[string, Answer]>([
    ['a refusal', { status: 404, body: '{}' }],
    ['what is no text', { status: 200, body: new Uint8Array() }],
  ])('%s', (_, answer) => {
    ask('a', answer)
    ask('a', answer)
    expect(reads).toEqual(['a', 'a'])
  })

  test('the answer to a question of more than 200 characters', () => {
    const long = 'a'.repeat(201)
    ask(long)
    ask(long)
    expect(reads).toHaveLength(2)
  })

  test('everything, where the store does not tell its version', () => {
    version = undefined
    ask('a')
    ask('a')
    expect(reads).toEqual(['a', 'a'])
  })
})

describe('when the answers grow too large', () => {
  beforeEach(() => {
    cache = cacheOf(2_000, 100)
    for (const question of ['a', 'b', 'c', 'd']) ask(question)
  })

  test('those that came first are kept, for a while', () => {
    for (const question of ['a', 'd', 'd']) ask(question)
    expect(reads).toEqual(['a', 'b', 'c', 'd', 'd', 'd'])
  })

  test('later they are forgotten for those that are asked for now', async () => {
    await Bun.sleep(110)
    for (const question of ['d', 'd', 'a']) ask(question)
    expect(reads).toEqual(['a', 'b', 'c', 'd', 'd', 'a'])
  })
})
