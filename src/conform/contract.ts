import { int64 } from '../field.ts'
import { InexactNumber, int64Max, isJsonObject } from '../int64.ts'
import { type Pet, type PetStatus, petStatus } from '../pet.ts'
import {
  absentId,
  type Check,
  type Exchange,
  Failed,
  type FieldRule,
  fail,
  isInvalidPet,
  isSame,
  type JsonObject,
  newPet,
  type Probe,
  petName,
  post,
  postEach,
  type Sendable,
  skip,
  wrongBearer,
} from './check.ts'

const string: FieldRule = { expected: 'a string', isValid: value => typeof value === 'string' }
const integer: FieldRule = { expected: 'an int64', isValid: value => int64.read(value) !== undefined }

/** The interface alone: it does not limit names. */
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

const statuses = ['available', 'pending', 'sold'] as const satisfies readonly PetStatus[]
const oddName = `${petName()} "é" 🐕`
/** The first integer that a double cannot hold. */
const beyondDoubles = 2n ** 53n + 1n
const pendingPagesMax = 20
const invalidPets: readonly (readonly [what: string, requests: readonly Sendable[]])[] = [
  ['without a name', postEach('name', [undefined])],
  ['without a categoryId', postEach('categoryId', [undefined])],
  ['without a body', [post(undefined)]],
  ['with a name that is not a string', postEach('name', [42, null, true, ['Rex'], {}])],
  ['with a categoryId that is not an integer', postEach('categoryId', ['7', 1.5, true, null, [7]])],
  ['with a categoryId above 64 bits', postEach('categoryId', [int64Max + 1n])],
  ['with an unknown status', postEach('status', ['lost', 'Available', '', 7])],
  ['with a body that is not an object', ['[]', '"Rex"', '7', 'null'].map(body => post(body))],
  ['with a body that is not JSON', [post('{"name":'), post('name=Rex')]],
]

function check(section: string, name: string, needs: readonly Check[], run: (probe: Probe) => Promise<void>): Check {
  return { section, name, needs, run }
}

const creates = check('createPet', 'POST /pets is 201 with the Pet and its id', [], async probe => {
  const created = await probe.create()
  const pet = created.object()
  for (const [field, rule] of Object.entries(petFields)) created.expectField(pet, field, rule)
})

const eachStatus = check('createPet', 'POST /pets accepts each status and returns it', [creates], async probe => {
  for (const status of statuses) {
    const created = await probe.create({ status: JSON.stringify(status) })
    created.expectValues(created.object(), { status })
  }
})

const exact = check('Resources', 'POST /pets returns a categoryId beyond 2^53 exactly', [creates], async probe => {
  for (const categoryId of [beyondDoubles, int64Max]) {
    const created = await probe.create({ categoryId: String(categoryId) })
    created.expectValues(created.object(), { categoryId })
  }
})

const lists = check('listPets', 'GET /pets is 200 with a JSON array', [], async probe => {
  await probe.list('')
})

const limitName = 'GET /pets?limit accepts 1, 20 and 100, and lists no more animals'
const limits = check('Limits', limitName, [creates, lists], async probe => {
  for (const limit of [1, 20, 100]) {
    // In a small catalogue, this shows only that the value is accepted.
    if (!probe.target.readOnly) await probe.ensurePets(Math.min(limit, 20) + 1)
    expectAtMost(limit, await probe.list(`?limit=${limit}`))
  }
})

const defaultLimit = check('Limits', 'GET /pets without a limit lists at most 20 animals', [limits], async probe => {
  await probe.ensurePets(21)
  expectAtMost(20, await probe.list(''))
})

const listedIds = listsField('id')

const filterName = 'GET /pets?status lists only animals with that status'
const filters = check('listPets', filterName, [eachStatus, limits], async probe => {
  for (const status of statuses) {
    // A filter shows nothing if all animals have the same status.
    await probe.ensurePets(1, status === 'sold' ? 'pending' : 'sold')
    expectOnly(status, await probe.list(`?limit=100&status=${status}`))
  }
})

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
  ...invalidPets.map(([what, requests]) => refuses('createPet', `POST /pets ${what}`, [creates], 400, requests)),
  exact,
  lists,
  limits,
  defaultLimit,
  check('Limits', 'GET /pets?status without a limit lists at most 20 animals', [defaultLimit], async probe => {
    await probe.ensurePets(21, 'available')
    expectAtMost(20, await probe.list('?status=available'))
  }),
  check('Resources', 'two new animals get different ids', [creates], async probe => {
    while (probe.added.length < 2) (await probe.create()).petId()
    const repeated = repeatedIn(probe.added.map(({ id }) => id))
    if (repeated !== undefined) fail('another id for each new animal', `id ${repeated} for two`)
  }),
  listedIds,
  listsField('name'),
  listsField('categoryId'),
  listsField('status'),
  check('Resources', 'no two listed animals have the same id', [listedIds], async probe => {
    await probe.ensurePets(2)
    const list = await probe.list('?limit=100')
    const repeated = repeatedIn(list.petIds())
    list.expect(repeated === undefined, 'every id once', `lists id ${repeated} twice`)
  }),
  check('getPet', 'GET /pets/{petId} returns the animal as it was added or listed', [listedIds], async probe => {
    const pet = await (probe.target.readOnly ? firstListed(probe) : newAnimal(probe, 'sold'))
    const got = await probe.send(`/pets/${pet.id}`)
    expectStored(got, got.expectStatus(200).object(), pet)
  }),
  refuses('getPet', 'GET /pets/{petId} with the id of no animal', [], 404, [`/pets/${absentId()}`]),
  filters,
  check('listPets', 'GET /pets applies limit and status together', [filters], async probe => {
    await probe.ensurePets(2, 'sold')
    const list = await probe.list('?limit=1&status=sold')
    expectAtMost(1, list)
    expectOnly('sold', list)
  }),
  check('listPets', 'a new animal is in the list of its status, as it was added', [listedIds], async probe => {
    const pet = await newAnimal(probe, 'pending')
    let list = await probe.list('?limit=100&status=pending')
    for (let pages = 1; ; pages++) {
      const index = list.petIds().indexOf(pet.id)
      if (index >= 0) return expectStored(list, list.items()[index] as JsonObject, pet)
      const next = list.nextQuery()
      if (next === undefined) {
        list.expect(list.items().length >= 100, `an animal with id ${pet.id}`)
        skip('more animals are pending than one list shows, and there is no next link')
      }
      if (pages === pendingPagesMax) skip(`more animals are pending than ${pendingPagesMax} pages show`)
      list = await probe.list(next)
    }
  }),
  ...refusesCredential('without a key', null),
  ...refusesCredential('with a wrong key', wrongBearer),
  check('Base address', 'the base address ends in /v1', [], async ({ target: { baseUrl } }) => {
    if (!baseUrl.endsWith('/v1')) fail('a base address that ends in /v1', baseUrl)
  }),
  check('Base address', 'responses are application/json', [listedIds], async probe => {
    for (const path of ['/pets', await probe.petPath()]) (await probe.send(path)).expectJsonType()
    if (!probe.target.readOnly) (await probe.create()).expectJsonType()
  }),
  // The last checks judge the responses that the others have met.
  check('Errors', 'requests are refused with the status of the interface', [], async ({ otherStatuses }) => {
    const found = [...otherStatuses].map(([kind, requests]) => `${kind}: ${[...requests].join(', ')}`)
    if (found.length > 0)
      fail('400 for invalid animals, 401 without a valid key, 404 for unknown ids', found.join('; '))
  }),
  check('Errors', 'errors are application/json', [], async ({ errors }) =>
    expectEach(errors, error => void error.expectJsonType().object()),
  ),
  ...Object.entries(errorFields).map(([field, rule]) =>
    check('Errors', `the ${field} of every Error is ${rule.expected}`, [], async ({ errors }) => {
      const readable = errors.filter(error => isJsonObject(error.json()))
      expectEach(readable, error => error.expectField(error.object(), field, rule))
    }),
  ),
]

function listsField(field: keyof Pet): Check {
  const rule = petFields[field]
  return check('Resources', `the ${field} of every listed animal is ${rule.expected}`, [limits], async probe => {
    await probe.ensurePets(1)
    const list = await probe.list('?limit=100')
    for (const item of list.items()) {
      // If the server rounds integers or accepts invalid animals, other checks report it.
      const isRounded = probe.failed.has(exact) && Object(item)[field] instanceof InexactNumber
      if (!isRounded && !isInvalidPet(item)) list.expectField(item, field, rule)
    }
  })
}

/** Checks every error and reports the first failure of each status, so that none hides another. */
function expectEach(errors: readonly Exchange[], judge: (error: Exchange) => void): void {
  if (errors.length === 0) skip('no response was an error that it could read')
  const failures = new Map<number, Failed>()
  for (const error of errors.toReversed()) {
    try {
      judge(error)
    } catch (failure) {
      if (!(failure instanceof Failed)) throw failure
      failures.set(error.response.status, failure)
    }
  }
  const each = (part: 'expected' | 'found') => [...new Set([...failures.values()].map(one => one[part]))].join('; ')
  if (failures.size > 0) fail(each('expected'), each('found'))
}

type Requests = readonly Sendable[] | ((probe: Probe) => Promise<readonly Sendable[]>)

/** The server refuses each of the requests. Another check reports all refusals with another 4xx than this status. */
function refuses(section: string, what: string, needs: readonly Check[], status: number, requests: Requests): Check {
  return check(section, `${what} is refused`, needs, async probe => {
    for (const request of typeof requests === 'function' ? await requests(probe) : requests) {
      const refused = await probe.send(request)
      const found = refused.response.status
      if (found < 400 || found >= 500) refused.expectStatus(status)
      const kind = `${found} instead of ${status}`
      if (found !== status) probe.otherStatuses.set(kind, (probe.otherStatuses.get(kind) ?? new Set()).add(what))
    }
  })
}

function refusesCredential(what: string, authorization: string | null): readonly Check[] {
  const onePet: Requests = async probe => [{ path: await probe.petPath(), authorization }]
  return [
    refuses('Authentication', `GET /pets ${what}`, [lists], 401, [{ path: '/pets', authorization }]),
    refuses('Authentication', `POST /pets ${what}`, [creates], 401, [post(newPet(), { authorization })]),
    refuses('Authentication', `GET /pets/{petId} ${what}`, [listedIds], 401, onePet),
  ]
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
  const created = await probe.create(fields)
  const id = created.petId()
  return { id, sent: { id, name: oddName, categoryId: int64Max, status }, returned: created.object() }
}

/** An animal of the catalogue, as the list shows it. */
async function firstListed(probe: Probe): Promise<Stored> {
  await probe.ensurePets(1)
  const list = await probe.list('?limit=1')
  const [id = 0n] = list.petIds()
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
