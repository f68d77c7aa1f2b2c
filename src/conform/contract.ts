import { InexactNumber, int64Max } from '../int64.ts'
import type { PetStatus } from '../pet.ts'
import { type Check, checksOf, creates, forEach, refusesWith4xx } from './check.ts'
import {
  absentId,
  type Exchange,
  errorFields,
  expectEach,
  fail,
  invalidPet,
  isInvalidPet,
  isSame,
  type JsonObject,
  limitDefault,
  newPet,
  type Probe,
  petFields,
  petName,
  post,
  postEach,
  prerequisites,
  skip,
  wrongBearer,
} from './exchange.ts'

const statuses = ['available', 'pending', 'sold'] as const satisfies readonly PetStatus[]
const oddName = `${petName()} "é" 🐕`
/** The first integer that a double cannot hold. */
const beyondDoubles = 2n ** 53n + 1n
const aboveDefault = limitDefault + 1
const pendingPagesMax = 20
const notObjects = ['[]', '"Rex"', '7', 'null'].map(body => post(body))
const aboveInt64 = post(invalidPet({ categoryId: `${int64Max + 1n}` }))
const notIntegers = ['7', 1.5, true, null, [7]]

/** Later checks depend on these. */
const basics: readonly Check[] = checksOf('contract', {
  createPet: {
    [prerequisites.creation]: async probe => {
      const created = await probe.create()
      const pet = created.object()
      for (const [field, rule] of Object.entries(petFields)) created.expectField(pet, field, rule)
    },
    [prerequisites.statuses]: async probe => {
      for (const status of statuses) {
        const created = await probe.create({ status: JSON.stringify(status) })
        created.expectValues(created.object(), { status })
      }
    },
    'POST /pets accepts an animal without a status': async probe => {
      const created = await probe.create({ status: undefined })
      created.expectField(created.object(), 'status', petFields.status)
    },
    ...creates(prerequisites.asSent, { name: JSON.stringify(oddName) }, { name: oddName, categoryId: 1n }),
    ...refusesWith4xx('POST /pets without a name', 400, postEach('name', [undefined])),
    ...refusesWith4xx('POST /pets without a categoryId', 400, postEach('categoryId', [undefined])),
    ...refusesWith4xx('POST /pets without a body', 400, post(undefined)),
    ...refusesWith4xx(
      'POST /pets with a name that is not a string',
      400,
      postEach('name', [42, null, true, ['Rex'], {}]),
    ),
    ...refusesWith4xx('POST /pets with a categoryId that is not an integer', 400, postEach('categoryId', notIntegers)),
    ...refusesWith4xx('POST /pets with a categoryId above 64 bits', 400, aboveInt64),
    ...refusesWith4xx('POST /pets with an unknown status', 400, postEach('status', ['lost', 'Available', '', 7])),
    ...refusesWith4xx('POST /pets with a body that is not an object', 400, notObjects),
    ...refusesWith4xx('POST /pets with a body that is not JSON', 400, [post('{"name":'), post('name=Rex')]),
  },
  Resources: {
    [prerequisites.exact]: async probe => {
      for (const categoryId of [beyondDoubles, int64Max]) {
        const created = await probe.create({ categoryId: String(categoryId) })
        created.expectValues(created.object(), { categoryId })
      }
    },
  },
  listPets: { [prerequisites.list]: async probe => (await probe.send('/pets')).items() },
  Limits: {
    [prerequisites.limit]: async probe => {
      for (const limit of [1, 20, 100]) {
        // In a small catalogue, this shows only that the value is accepted.
        if (!probe.target.readOnly) await probe.ensurePets(Math.min(limit + 1, aboveDefault))
        expectAtMost(limit, await probe.list(`?limit=${limit}`))
      }
    },
    [prerequisites.defaultLimit]: async probe => {
      await probe.ensurePets(aboveDefault)
      expectAtMost(limitDefault, await probe.list(''))
    },
    [`GET /pets?status without a limit lists at most ${limitDefault} animals`]: async probe => {
      await probe.ensurePets(aboveDefault, 'available')
      const list = await probe.list('?status=available')
      await probe.step([prerequisites.defaultLimit], () => expectAtMost(limitDefault, list))
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
          // If the server rounds integers or accepts invalid animals, other checks report it.
          const isRounded = probe.failed.has(prerequisites.exact) && Object(item)[field] instanceof InexactNumber
          if (!isRounded && !isInvalidPet(item)) list.expectField(item, field, rule)
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
    [prerequisites.get]: async probe => {
      const pet = await (probe.target.readOnly ? firstListed(probe) : newAnimal(probe, 'sold'))
      const got = await probe.send(`/pets/${pet.id}`)
      expectStored(got, got.expectStatus(200).object(), pet)
    },
    ...refusesWith4xx('GET /pets/{petId} with the id of no animal', 404, `/pets/${absentId()}`),
  },
  listPets: {
    [prerequisites.filter]: async probe => {
      for (const status of statuses) {
        // A filter shows nothing if all animals have the same status.
        await probe.ensurePets(1, status === 'sold' ? 'pending' : 'sold')
        expectOnly(status, await probe.list(`?limit=100&status=${status}`))
      }
    },
    'GET /pets applies limit and status together': async probe => {
      await probe.ensurePets(2, 'sold')
      const list = await probe.list('?limit=1&status=sold')
      await probe.step([prerequisites.limit], () => expectAtMost(1, list))
      await probe.step([prerequisites.filter], () => expectOnly('sold', list))
    },
    'a new animal is in the list of its status, as it was added': async probe => {
      const pet = await newAnimal(probe, 'pending')
      let list = await probe.list('?limit=100&status=pending')
      for (let pages = 1; ; pages++) {
        const index = (await probe.idsOf(list)).indexOf(pet.id)
        if (index >= 0) return expectStored(list, list.items()[index] as JsonObject, pet)
        const next = list.nextPath()
        if (next === undefined) {
          list.expect(list.items().length >= 100, `an animal with id ${pet.id}`)
          skip('more animals are pending than one list shows, and there is no next link')
        }
        if (pages === pendingPagesMax) skip(`more animals are pending than ${pendingPagesMax} pages show`)
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
    [prerequisites.jsonType]: async probe => {
      for (const path of ['/pets', await probe.petPath()]) (await probe.send(path)).expectJsonType()
      if (!probe.target.readOnly) (await probe.create()).expectJsonType()
    },
  },
  Errors: {
    [prerequisites.refusals]: async probe => {
      const found = [...probe.otherStatuses].map(([kind, requests]) => `${kind}: ${[...requests].join(', ')}`)
      if (found.length > 0)
        fail('400 for invalid animals, 401 without a valid key, 404 for unknown ids', found.join('; '))
    },
    [prerequisites.errorJson]: async probe =>
      expectEach(await probe.errors(), error => void error.expectJsonType().object()),
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
    ...refusesWith4xx(`GET /pets ${what}`, 401, { path: '/pets', authorization }),
    ...refusesWith4xx(`POST /pets ${what}`, 401, post(newPet(), { authorization })),
    ...refusesWith4xx(`GET /pets/{petId} ${what}`, 401, async probe => ({
      path: await probe.petPath(),
      authorization,
    })),
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

interface Stored {
  readonly id: bigint
  readonly sent: JsonObject
  /** In the response to POST, or in a list. */
  readonly returned: JsonObject
}

/** A new animal with values that a server may change when it stores or reads them. */
async function newAnimal(probe: Probe, status: PetStatus): Promise<Stored> {
  const fields = { name: JSON.stringify(oddName), categoryId: String(int64Max), status: JSON.stringify(status) }
  const { asSent, exact, statuses } = prerequisites
  const created = await probe.step([asSent, exact, statuses], () => probe.create(fields))
  const id = await probe.idOf(created)
  return { id, sent: { id, name: oddName, categoryId: int64Max, status }, returned: created.object() }
}

/** An animal of the catalogue, as the list shows it. */
async function firstListed(probe: Probe): Promise<Stored> {
  await probe.ensurePets(1)
  const list = await probe.list('?limit=1')
  const [id = 0n] = await probe.idsOf(list)
  const { name, categoryId, status }: JsonObject = Object(list.items()[0])
  const listed = { id, name, categoryId, status }
  return { id, sent: listed, returned: listed }
}

/** Each field is as sent or as returned: another check reports a POST that returns other values than were sent. */
function expectStored(read: Exchange, pet: JsonObject, { sent, returned }: Stored): void {
  for (const [field, value] of Object.entries(sent)) {
    if (!isSame(pet[field], returned[field])) read.expectValues(pet, { [field]: value })
  }
}
