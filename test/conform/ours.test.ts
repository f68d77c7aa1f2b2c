import { expect, test } from 'bun:test'
import { contractChecks } from '../../src/conform/contract.ts'
import { addedMax, conform } from '../../src/conform/run.ts'
import { petStatuses } from '../../src/pet.ts'
import { readProjectFile } from '../support/process.ts'
import { type Service, startService } from '../support/service.ts'
import { failedDecisions } from './decisions.ts'

function check(service: Service, { readOnly = false, key = service.key } = {}) {
  return conform({ baseUrl: `${service.origin}/v1`, key, readOnly })
}

async function addAnimals(service: Service, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const status = petStatuses[index % petStatuses.length] ?? 'sold'
    await service.stores.pets.create({ name: `Rex ${index}`, categoryId: 7n, status })
  }
}

test.each([
  ['an empty catalogue', {}, 0],
  ['a catalogue of 150 animals', {}, 150],
  ['a public base address elsewhere', { publicUrl: 'https://pets.example.com/shop/v1' }, 0],
  ['a rate limit', { rateLimit: { requests: 1_000, seconds: 1 } }, 0],
])('our service passes every check and follows every decision, with %s', async (_, options, animals) => {
  await using service = await startService(options)
  await addAnimals(service, animals)
  const results = await check(service)
  expect(results.map(({ check }) => check)).toEqual([...contractChecks])
  expect(results.filter(({ finding }) => finding.outcome !== 'passed')).toEqual([])
  expect(await failedDecisions(`${service.origin}/v1`, service.key)).toEqual([])
  expect(service.logged.filter(({ message }) => message === 'internal error')).toEqual([])
})

test('a run adds about as many animals as it says, under recognizable names', async () => {
  await using service = await startService()
  await check(service)
  const { pets } = await service.stores.pets.list({ limit: 1_000 })
  expect(pets.filter(({ name }) => !name.startsWith('conform '))).toEqual([])
  expect(pets.length).toBeWithin(addedMax - 5, addedMax + 1)
})

test('a run that only reads passes with a read-only key, and adds nothing', async () => {
  await using service = await startService()
  await addAnimals(service, 63)
  const before = await service.stores.pets.list({ limit: 100 })
  const key = await service.newKey({ permission: 'read-only' })
  const results = await check(service, { readOnly: true, key })
  const writes = { outcome: 'skipped', why: 'it writes, and this run only reads' }
  const others = results.filter(({ finding }) => finding.outcome !== 'passed')
  expect(others.map(({ finding }) => finding)).toEqual(others.map(() => writes as never))
  expect(others.filter(({ check: { name } }) => name.startsWith('GET '))).toEqual([])
  expect(await service.stores.pets.list({ limit: 100 })).toEqual(before)
})

test('a key that may not write fails one check, with the response of the server', async () => {
  await using service = await startService()
  const key = await service.newKey({ permission: 'read-only' })
  const failed = (await check(service, { key })).filter(({ finding }) => finding.outcome === 'failed')
  expect(failed.map(({ finding }) => finding)).toEqual([
    { outcome: 'failed', expected: 'status 201', found: expect.stringMatching(/^POST .* returned 403 .*may write/) },
  ])
})

test('a rate limit that is reached fails nothing, and a run that starts with it ends', async () => {
  await using service = await startService({ rateLimit: { requests: 10, seconds: 3_600 } })
  const others = (await check(service)).flatMap(({ finding }) => (finding.outcome === 'passed' ? [] : [finding]))
  const reached = { outcome: 'skipped', why: "the server's rate limit is reached" }
  expect(others.length).toBeGreaterThan(20)
  expect(others).toEqual(others.map(() => reached as never))
  await expect(check(service)).rejects.toThrow(/rate limit is reached$/)
})

test('a run that only reads an empty catalogue fails nothing, and reports what it could not check', async () => {
  await using service = await startService()
  const results = await check(service, { readOnly: true })
  expect(results.filter(({ finding }) => finding.outcome === 'failed')).toEqual([])
  const { finding } = results.find(({ check: { name } }) => name.startsWith('no two listed')) ?? {}
  const why = 'the catalogue has too few animals for it, and this run only reads'
  expect(finding).toEqual({ outcome: 'skipped', why })
})

test('every check names a section of docs/interface.md', () => {
  const page = readProjectFile('docs/interface.md')
  const headings = [...page.matchAll(/^#+ ([^:\n]*)/gm)].map(([, heading]) => heading)
  expect(contractChecks.filter(({ section }) => !headings.includes(section))).toEqual([])
})

const tooMany = 'more animals are pending than one list shows'
const tooFew = 'the catalogue has too few animals for it, and this run only reads'

test.each([
  ['100 animals are pending', 'pending', 100, false, tooMany, ['a new animal is in the list of its status']],
  ['all animals are sold', 'sold', 30, true, tooFew, ['GET /pets without a limit', 'GET /pets?status lists only']],
] as const)('if %s, the checks that show nothing are skipped', async (_, status, count, readOnly, why, names) => {
  await using service = await startService()
  const rex = { name: 'Rex', categoryId: 7n, status }
  await Promise.all(Array.from({ length: count }, () => service.stores.pets.create(rex)))
  const results = await check(service, { readOnly })
  expect(results.filter(({ finding }) => finding.outcome === 'failed')).toEqual([])
  const skipped = results.filter(({ finding }) => finding.outcome === 'skipped' && finding.why === why)
  expect(skipped.map(({ check }) => check.name)).toEqual(names.map(name => expect.stringContaining(name)))
})
