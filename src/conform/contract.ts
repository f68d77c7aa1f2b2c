import { InexactNumber, int64Max, isJsonObject } from '../int64.ts'
import type { PetStatus } from '../pet.ts'
import { type Check, checksOf, creates, forEach, refuses } from './check.ts'
import {
  absentId,
  type Exchange,
  errorFields,
  expectEach,
  fail,
  type JsonObject,
  judges,
  newPet,
  type Probe,
  petFields,
  petName,
  post,
  postEach,
  skip,
  wrongBearer,
} from './exchange.ts'

const statuses = ['available', 'pending', 'sold'] as const satisfies readonly PetStatus[]
const odd = { name: `${petName()} "é" 🐕`, categoryId: 1n }
/** The first integer that a double cannot hold. */
const beyondDoubles = 2n ** 53n + 1n
/** As the interface says: a constant of the service could be wrong. */
const limitDefault = 20
const aboveDefault = limitDefault + 1
const pagesMax = 20
const notIntegers = ['7', 1.5, true, null, [7]]

/** Other checks need what these judge. */
const basics: readonly Check[] = checksOf('contract', {
  createPet: {
    [judges.creation]: async probe => {
      const created = await probe.create()
      const pet = created.object()
      for (const [field, rule] of Object.entries(petFields)) created.expectField(pet, field, rule)
    },
    [judges.statuses]: async probe => {
      for (const status of statuses) {
        const created = await probe.create({ status: JSON.stringify(status) })
        created.expectValues(created.object(), { status })
      }
    },
    ...creates('POST /pets accepts an animal without a status', { status: undefined }),
    ...creates(judges.asSent, { name: JSON.stringify(odd.name) }, odd),
    ...refuses('POST /pets without a name', 400, postEach('name', [undefined])),
    ...refuses('POST /pets without a categoryId', 400, postEach('categoryId', [undefined])),
    ...refuses('POST /pets without a body', 400, post(undefined)),
    ...refuses('POST /pets with a name that is not a string', 400, postEach('name', [42, null, true, ['Rex'], {}])),
    ...refuses('POST /pets with a categoryId that is not an integer', 400, postEach('categoryId', notIntegers)),
    ...refuses('POST /pets with a categoryId above 64 bits', 400, post(newPet({ categoryId: `${int64Max + 1n}` }))),
    ...refuses('POST /pets with an unknown status', 400, postEach('status', ['lost', 'Available', '', 7])),
    ...refuses('POST /pets with a body that is not an object', 400, [
      post('[]'),
      post('"Rex"'),
      post('7'),
      post('null'),
    ]),
    ...refuses('POST /pets with a body that is not JSON', 400, [post('{"name":'), post('name=Rex')]),
  },
  Resources: {
    [judges.exact]: async probe => {
      for (const categoryId of [beyondDoubles, int64Max]) {
        const created = await probe.create({ categoryId: String(categoryId) })
        created.expectValues(created.object(), { categoryId })
      }
    },
  },
  listPets: { [judges.list]: async probe => (await probe.send('/pets')).items() },
  Limits: {
    [judges.limit]: async probe => {
      for (const limit of [1, 20, 100]) {
        // In a small catalogue, this shows only that the value is accepted.
        if (!probe.target.readOnly) await probe.ensurePets(Math.min(limit + 1, aboveDefault))
        expectAtMost(limit, await probe.list(`?limit=${limit}`))
      }
    },
    [`GET /pets without a limit lists at most ${limitDefault} animals`]: async probe => {
      await probe.ensurePets(aboveDefault)
      expectAtMost(limitDefault, await probe.list(''))
    },
  },
})

const details: readonly Check[] = checksOf('contract', {
  Resources: {
    'two new animals get different ids': async probe => {
      while (probe.added.length < 2) await probe.addPet()
      const repeated = repeatedIn(probe.added.map(({ id }) => id))
      if (repeated !== undefined) fail('another id for each new animal', `id ${repeated} for two`)
    },
    ...forEach(Object.entries(petFields), ([field, rule]) => [
      `the ${field} of every listed animal is ${rule.expected}`,
      async probe => {
        await probe.ensurePets(1)
        const list = await probe.list('?limit=100')
        for (const item of list.items()) {
          // If the server rounds integers, one check reports it.
          if (!(probe.failed.has(judges.exact) && isRounded(item, field))) list.expectField(item, field, rule)
        }
      },
    ]),
    'no two listed animals have the same id': async probe => {
      await probe.ensurePets(2)
      const list = await probe.list('?limit=100')
      const repeated = repeatedIn(await probe.idsOf(list))
      list.expect(repeated === undefined, 'every id once', `lists id ${repeated} twice`)
    },
  },
  getPet: {
    'GET /pets/{petId} returns the animal as it was added or listed': async probe => {
      const pet = await (probe.target.readOnly ? firstListed(probe) : newAnimal(probe, 'sold'))
      const got = await probe.send(`/pets/${pet['id']}`)
      await expectStored(probe, got, got.expectStatus(200).object(), pet)
    },
    ...refuses('GET /pets/{petId} with the id of no animal', 404, `/pets/${absentId()}`),
  },
  listPets: {
    [judges.filter]: async probe => {
      for (const status of statuses) {
        // A filter shows nothing if all animals have the same status.
        await probe.ensurePets(1, status === 'sold' ? 'pending' : 'sold')
        expectOnly(status, await probe.list(`?limit=100&status=${status}`))
      }
    },
    'GET /pets applies limit and status together': async probe => {
      await probe.ensurePets(2, 'sold')
      const list = await probe.list('?limit=1&status=sold')
      await probe.step('the limit alone', [judges.limit], () => expectAtMost(1, list))
      await probe.step('the filter alone', [judges.filter], () => expectOnly('sold', list))
    },
    'a new animal is in the list of its status, as it was added': async probe => {
      const { id, ...sent } = await newAnimal(probe, 'pending')
      let list = await probe.list('?limit=100&status=pending')
      for (let pages = 1; ; pages++) {
        const index = (await probe.idsOf(list)).indexOf(id)
        if (index >= 0) return expectStored(probe, list, list.items()[index] as JsonObject, sent)
        const next = list.nextPath()
        if (next === undefined) {
          list.expect(list.items().length >= 100, `an animal with id ${id}`)
          skip('more animals are pending than one list shows, and there is no next link')
        }
        if (pages === pagesMax) skip(`more animals are pending than ${pagesMax} pages show`)
        list = await probe.list(next.slice('/pets'.length))
      }
    },
  },
  Authentication: {
    ...refusesCredential('without a key', null),
    ...refusesCredential('with a wrong key', wrongBearer),
  },
  'Base address': {
    'the base address ends in /v1': async ({ target: { baseUrl } }) => {
      if (!baseUrl.endsWith('/v1')) fail('a base address that ends in /v1', baseUrl)
    },
    [judges.jsonType]: async probe => {
      for (const path of ['/pets', await probe.petPath()]) (await probe.send(path)).expectJsonType()
    },
  },
  Errors: {
    [judges.errorJson]: async probe => expectEach(await probe.errors(), error => void error.expectJsonType().object()),
    ...forEach(Object.entries(errorFields), ([field, rule]) => [
      `the ${field} of every Error is ${rule.expected}`,
      async probe => {
        expectEach(await probe.readableErrors(), error => error.expectField(error.object(), field, rule))
      },
    ]),
  },
})

export const contractChecks: readonly Check[] = [...basics, ...details]

function refusesCredential(what: string, authorization: string | null) {
  return {
    ...refuses(`GET /pets ${what}`, 401, { path: '/pets', authorization }),
    ...refuses(`POST /pets ${what}`, 401, post(newPet(), { authorization })),
    ...refuses(`GET /pets/{petId} ${what}`, 401, async probe => ({ path: await probe.petPath(), authorization })),
  }
}

function expectAtMost(count: number, list: Exchange): void {
  const { length } = list.items()
  list.expect(length <= count, `at most ${count} animals`, `lists ${length}`)
}

function expectOnly(status: PetStatus, list: Exchange): void {
  for (const item of list.items()) {
    const { id, status: found } = Object(item)
    const other = `lists id ${id} with the status ${found ?? 'absent'}`
    list.expect(found === status, `only animals with the status ${status}`, other)
  }
}

function repeatedIn(ids: readonly bigint[]): bigint | undefined {
  return ids.find((id, index) => ids.indexOf(id) !== index)
}

function isRounded(item: unknown, field: string): boolean {
  return isJsonObject(item) && item[field] instanceof InexactNumber
}

/** A new animal. Its categoryId shows whether it is read exactly. */
async function newAnimal(probe: Probe, status: PetStatus) {
  const sent = { name: petName(), categoryId: beyondDoubles, status }
  const fields = { name: JSON.stringify(sent.name), categoryId: String(beyondDoubles), status: JSON.stringify(status) }
  return { ...sent, id: await probe.addPet(fields) }
}

/** An animal of the catalogue, as the list shows it. */
async function firstListed(probe: Probe): Promise<JsonObject> {
  await probe.ensurePets(1)
  const list = await probe.list('?limit=1')
  const [id] = await probe.idsOf(list)
  const { name, categoryId, status }: JsonObject = Object(list.items()[0])
  return { id, name, categoryId, status }
}

async function expectStored(probe: Probe, read: Exchange, pet: JsonObject, expected: JsonObject): Promise<void> {
  const judgedBy = [judges.asSent, judges.statuses, judges.exact]
  await probe.step('adding an animal with exact values', judgedBy, () => read.expectValues(pet, expected))
}
