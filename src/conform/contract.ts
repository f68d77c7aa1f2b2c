// The checks, one for each rule of docs/interface.md.

import { int64 } from '../field.ts'
import { int64Max, isJsonObject } from '../int64.ts'
import { type Pet, type PetStatus, petStatus, petStatuses } from '../pet.ts'
import {
  absentId,
  type Check,
  type Exchange,
  Failed,
  type FieldRule,
  newPet,
  type Probe,
  petName,
  post,
  postEach,
  type Sendable,
  Skipped,
  wrongBearer,
} from './check.ts'

const string: FieldRule = { expected: 'a string', isValid: value => typeof value === 'string' }
const integer: FieldRule = { expected: 'an int64', isValid: value => int64.read(value) !== undefined }

/** Names are not judged: a server may have animals from before its rules. */
const petFields = {
  id: integer,
  name: string,
  categoryId: integer,
  status: {
    expected: `${petStatus.expected}, or absent`,
    isValid: value => value === undefined || petStatus.read(value) !== undefined,
  },
} satisfies Record<keyof Pet, FieldRule>

const errorFields = {
  code: string,
  message: string,
  status: { expected: 'the HTTP status', isValid: (value, status) => value === status },
} satisfies Record<string, FieldRule>

const oddName = `${petName()} "é" 🐕`
const invalidPets: readonly (readonly [what: string, requests: readonly Sendable[]])[] = [
  ['without a name', postEach('name', [undefined])],
  ['without a categoryId', postEach('categoryId', [undefined])],
  ['without a body', [post(undefined)]],
  ['with a name that is not a string', postEach('name', [42, null, true, ['Rex'], {}])],
  ['with a categoryId that is not an integer', postEach('categoryId', ['7', 1.5, true, null, [7]])],
  ['with a categoryId above 64 bits', [post(newPet({ categoryId: String(int64Max + 1n) }))]],
  ['with an unknown status', postEach('status', ['lost', 'Available', '', 7])],
  ['with a body that is not an object', ['[]', '"Rex"', '7', 'null'].map(body => post(body))],
  ['with a body that is not JSON', [post('{"name":'), post('name=Rex')]],
]

function check(section: string, name: string, needs: readonly Check[], run: Check['run']): Check {
  return { section, name, needs, run }
}

const creates = check('createPet', 'POST /pets is 201 with the Pet and its id', [], async probe => {
  const created = await probe.create()
  const pet = created.object()
  for (const [field, rule] of Object.entries(petFields)) created.expectField(pet, field, rule)
})

const eachStatus = check('createPet', 'POST /pets accepts each status and returns it', [creates], async probe => {
  for (const status of petStatuses) {
    const created = await probe.create({ status: JSON.stringify(status) })
    created.expectValues(created.object(), { status })
  }
})

const exact = check('Resources', 'POST /pets returns a categoryId beyond 2^53 exactly', [creates], async probe => {
  for (const categoryId of [2n ** 53n + 1n, int64Max]) {
    const created = await probe.create({ categoryId: String(categoryId) })
    created.expectValues(created.object(), { categoryId })
  }
})

const lists = check('listPets', 'GET /pets is 200 with a JSON array', [], async probe => {
  await probe.list('')
})

const limitName = 'GET /pets?limit accepts 1, 20 and 100, and lists no more animals'
const limits = check('listPets', limitName, [creates, lists], async probe => {
  // In a small catalogue, this shows only that the values are accepted.
  if (!probe.target.readOnly) await probe.ensurePets(21, 'available')
  for (const limit of [1, 20, 100]) {
    expectAtMost(limit, await probe.list(`?limit=${limit}`))
    expectAtMost(limit, await probe.list(`?limit=${limit}&status=available`))
  }
})

const listedIds = listsField('id', [limits])

/** In the order in which they run. */
export const contractChecks: readonly Check[] = [
  creates,
  eachStatus,
  check('createPet', 'POST /pets accepts an animal without a status', [creates], async probe => {
    const created = await probe.create({ status: undefined })
    created.expectField(created.object(), 'status', petFields.status)
  }),
  check('createPet', 'POST /pets returns the name and the categoryId as sent', [creates], async probe => {
    const created = await probe.create({ name: JSON.stringify(oddName) })
    created.expectValues(created.object(), { name: oddName, categoryId: 1n })
  }),
  ...invalidPets.map(([what, requests]) =>
    check('createPet', `POST /pets ${what} is refused`, [creates], refused(400, ...requests)),
  ),
  exact,
  lists,
  limits,
  check('listPets', 'GET /pets without a limit lists at most 20 animals', [limits], async probe => {
    await probe.ensurePets(21)
    expectAtMost(20, await probe.list(''))
    await probe.ensurePets(21, 'available')
    expectAtMost(20, await probe.list('?status=available'))
  }),
  listedIds,
  listsField('name', [limits]),
  listsField('categoryId', [limits, exact]),
  listsField('status', [limits]),
  check('Resources', 'no two listed or new animals have the same id', [listedIds], async probe => {
    await probe.ensurePets(2)
    const list = await probe.list('?limit=100')
    for (const ids of [list.petIds(), probe.addedIds]) {
      const repeated = ids.find((id, index) => ids.indexOf(id) !== index)
      if (repeated !== undefined) throw new Failed('another id for each animal', `id ${repeated} twice`)
    }
  }),
  check('getPet', 'GET /pets/{petId} returns the animal as it was added or listed', [listedIds], async probe => {
    const pet = await (probe.target.readOnly ? firstListed(probe) : newAnimal(probe, 'sold'))
    const got = await probe.send(`/pets/${pet.id}`)
    got.expectValues(got.expectStatus(200).object(), pet)
  }),
  check('getPet', 'GET /pets/{petId} with the id of no animal is refused', [], refused(404, `/pets/${absentId()}`)),
  check('listPets', 'GET /pets?status lists only animals with that status', [eachStatus, limits], async probe => {
    for (const status of petStatuses) {
      // A filter shows nothing if all animals have the same status.
      const other = petStatuses.find(other => other !== status)
      await probe.ensurePets(1, other)
      const list = await probe.list(`?limit=100&status=${status}`)
      for (const item of list.items()) list.expectValues(item, { status })
    }
  }),
  check('listPets', 'a new animal is in the list of its status, as it was added', [listedIds], async probe => {
    const pet = await newAnimal(probe, 'pending')
    const list = await probe.list('?limit=100&status=pending')
    const index = list.petIds().indexOf(pet.id)
    if (index < 0 && list.items().length === 100) throw new Skipped('more animals are pending than one list shows')
    list.expect(index >= 0, `an animal with id ${pet.id}`)
    list.expectValues(list.items()[index], pet)
  }),
  ...refusesCredential('without a key', null),
  ...refusesCredential('with a wrong key', wrongBearer),
  check('Base address', 'responses are application/json', [listedIds], async probe => {
    for (const path of ['/pets', await probe.petPath()]) (await probe.send(path)).expectJsonType()
    if (!probe.target.readOnly) (await probe.create()).expectJsonType()
  }),
  // The last checks judge the responses that the others have met.
  check('Errors', 'errors are application/json', [], async ({ errors }) => {
    for (const error of errors) error.expectJsonType().object()
  }),
  ...Object.entries(errorFields).map(([field, rule]) =>
    check('Errors', `the ${field} of every Error is ${rule.expected}`, [], async ({ errors }) => {
      const readable = errors.filter(error => isJsonObject(error.json()))
      for (const error of readable) error.expectField(error.json(), field, rule)
    }),
  ),
]

function listsField(field: keyof Pet, needs: readonly Check[]): Check {
  const rule = petFields[field]
  return check('Resources', `the ${field} of every listed animal is ${rule.expected}`, needs, async probe => {
    await probe.ensurePets(1)
    const list = await probe.list('?limit=100')
    for (const item of list.items()) list.expectField(item, field, rule)
  })
}

/** The run of a check: the server refuses each of the requests with this status. */
function refused(status: number, ...requests: readonly Sendable[]): Check['run'] {
  return async probe => {
    for (const request of requests) (await probe.send(request)).expectStatus(status)
  }
}

function refusesCredential(what: string, authorization: string | null): readonly Check[] {
  const [list, create] = [{ path: '/pets', authorization }, post(newPet(), { authorization })]
  return [
    check('Authentication', `GET /pets ${what} is refused`, [lists], refused(401, list)),
    check('Authentication', `POST /pets ${what} is refused`, [creates], refused(401, create)),
    check('Authentication', `GET /pets/{petId} ${what} is refused`, [listedIds], async probe =>
      refused(401, { path: await probe.petPath(), authorization })(probe),
    ),
  ]
}

function expectAtMost(count: number, list: Exchange): void {
  const { length } = list.items()
  list.expect(length <= count, `at most ${count} animals`, `lists ${length}`)
}

/** A new animal with values that a server may change when it stores or reads them. */
async function newAnimal(probe: Probe, status: PetStatus) {
  // If the server rounds integers, another check reports it.
  const categoryId = probe.failed.has(exact) ? 1n : int64Max
  const fields = { name: JSON.stringify(oddName), categoryId: String(categoryId), status: JSON.stringify(status) }
  const id = (await probe.create(fields)).petId()
  return { id, name: oddName, categoryId, status }
}

async function firstListed(probe: Probe) {
  await probe.ensurePets(1)
  const list = await probe.list('?limit=1')
  const [id] = list.petIds()
  const { name, categoryId, status } = Object(list.items()[0])
  return { id, name, categoryId, status }
}
