import { describe, expect, test } from 'bun:test'
import { contractChecks } from '../../src/conform/contract.ts'
import { addedMax, conform } from '../../src/conform/run.ts'
import { petStatuses } from '../../src/pet.ts'
import { type Service, startService } from '../http/service.ts'
import { engines } from '../support/engines.ts'
import { readProjectFile } from '../support/process.ts'
import { failedDecisions } from './decisions.ts'

function check(service: Service, { readOnly = false, key = service.key } = {}) {
  return Array.fromAsync(conform({ baseUrl: `${service.origin}/v1`, key, readOnly }))
}

async function addAnimals(service: Service, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const status = petStatuses[index % petStatuses.length] ?? 'sold'
    await service.stores.pets.create({ name: `Rex ${index}`, categoryId: 7n, status })
  }
}

describe.each(engines)('on %s', engine => {
  test.each([
    ['an empty catalogue', {}, 0],
    ['a catalogue of 150 animals', {}, 150],
    ['a public base address elsewhere', { publicUrl: 'https://pets.example.com/shop/v1' }, 0],
    ['a rate limit', { rateLimit: { requests: 1_000, seconds: 1 } }, 0],
  ])('our service passes every check and follows every decision, with %s', async (_, options, animals) => {
    await using service = await startService({ engine, ...options })
    await addAnimals(service, animals)
    const results = await check(service)
    expect(results.map(({ name }) => name)).toEqual(contractChecks.map(({ name }) => name))
    expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([])
    const { pets } = await service.stores.pets.list({ limit: 1_000 })
    const added = pets.filter(({ name }) => name.startsWith('conform '))
    expect(added.length).toBeWithin(1, addedMax + 1)
    expect(pets).toHaveLength(animals + added.length)
    expect(await failedDecisions(`${service.origin}/v1`, service.key)).toEqual([])
    expect(service.logged.filter(({ message }) => message === 'internal error')).toEqual([])
  })
})

test('a key that may not write fails the first check, with the response of the server, and the others name it', async () => {
  await using service = await startService()
  const key = await service.newKey({ permission: 'read-only' })
  const [first, ...others] = await check(service, { key })
  const found = expect.stringMatching(/^POST .* returned 403 .*may write/)
  expect(first).toMatchObject({ outcome: 'failed', expected: 'status 201', found })
  for (const other of others) {
    expect(other).toMatchObject({ outcome: 'skipped', why: `depends on the failed check: ${first?.name}` })
  }
})

test('every check names a section of docs/interface.md', () => {
  const page = readProjectFile('docs/interface.md')
  const headings = [...page.matchAll(/^#+ ([^:\n]*)/gm)].map(([, heading]) => heading)
  expect(contractChecks.filter(({ section }) => !headings.includes(section))).toEqual([])
})

test('if the catalogue is empty and a run only reads, the checks that need an animal are skipped', async () => {
  await using service = await startService()
  const results = await check(service, { readOnly: true })
  expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([])
  const why = 'the catalogue is empty, and this run only reads'
  const skipped = results.filter(result => result.outcome === 'skipped' && result.why === why)
  const names = ['{petId} returns the animal', '{petId} without a key', '{petId} with a wrong key']
  expect(skipped.map(({ name }) => name)).toEqual(names.map(part => expect.stringContaining(part)))
})
