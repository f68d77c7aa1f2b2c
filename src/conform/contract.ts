// The checks, one for each rule of docs/interface.md.

import { int64 } from '../field.ts'
import { int64Max } from '../int64.ts'
import { type PetStatus, petStatus, petStatuses } from '../pet.ts'
import { expectFields, Failed, fail, newPet, type Probe, type ProbeRequest, Skipped, sameAs, show } from './probe.ts'

/** Rejects with Failed or Skipped unless the server passes. */
type Run = (probe: Probe) => Promise<unknown>

/** One rule of the interface. It accepts any content of the catalogue. */
export interface Check {
  /** The heading in docs/interface.md with the rule. */
  readonly section: string
  readonly name: string
  readonly run: Run
  /** If it fails, all later checks are skipped: they may fail for the same reason. */
  readonly isEssential: boolean
}

const string = { expected: 'a string', read: (value: unknown) => (typeof value === 'string' ? value : undefined) }
const optionalStatus = {
  expected: `${petStatus.expected}, or absent`,
  read: (value: unknown) => (value === undefined ? 'absent' : petStatus.read(value)),
}
const petRules = { id: int64, name: string, categoryId: int64, status: optionalStatus }

const oddName = 'conform "é" 🐕'
const wrongKey = `Bearer conform-wrong-key-${crypto.randomUUID()}`
// Random, near the end of the range: no animal has it.
const absentId = int64Max - 1n - BigInt(Math.floor(Math.random() * 1e12))

/** In the order in which they run. */
export const contractChecks: readonly Check[] = [
  ...essentialChecks('createPet', {
    'POST /pets is 201 with the Pet and its id': probe => probe.create({}, petRules),
  }),
  ...checks('createPet', {
    'POST /pets accepts each status and returns it': async probe => {
      for (const status of petStatuses) await probe.create({ status })
    },
    'POST /pets accepts an animal without a status': probe =>
      probe.create({ status: undefined }, { status: optionalStatus }),
    'POST /pets returns the name and the categoryId as sent': probe => probe.create({ name: oddName, categoryId: 1n }),
    'POST /pets without a name is refused': refusesPets('name', undefined),
    'POST /pets without a categoryId is refused': refusesPets('categoryId', undefined),
    'POST /pets without a body is refused': refuses(400, post(undefined)),
    'POST /pets with a name that is not a string is refused': refusesPets('name', 42, null, true, ['Rex'], {}),
    'POST /pets with a categoryId that is not an integer is refused': refusesPets(
      'categoryId',
      '7',
      1.5,
      true,
      null,
      [7],
    ),
    'POST /pets with a categoryId above 64 bits is refused': refusesPets('categoryId', int64Max + 1n),
    'POST /pets with an unknown status is refused': refusesPets('status', 'lost', 'Available', '', 7),
    'POST /pets with a body that is not an object is refused': refuses(400, ...['[]', '"Rex"', '7', 'null'].map(post)),
    'POST /pets with a body that is not JSON is refused': refuses(400, post('{"name":'), post('name=Rex')),
  }),
  ...essentialChecks('listPets', {
    'GET /pets is 200 with a JSON array': probe => probe.list(),
    'GET /pets?limit accepts 1, 20 and 100, and lists no more animals': async probe => {
      const { pets } = await probe.list('?limit=100&status=available')
      // Later checks need them, too. A run that only reads shows less in a small catalogue.
      for (let count = pets.length; count < 21 && !probe.target.readOnly; count++) await probe.create()
      for (const limit of [1, 20, 100]) {
        await probe.list(`?limit=${limit}`, limit)
        await probe.list(`?limit=${limit}&status=available`, limit)
      }
    },
  }),
  ...checks('Resources', {
    'every listed animal is a Pet': probe => probe.list('?limit=100', 100, petRules),
    'POST /pets returns a categoryId beyond 2^53 exactly': async probe => {
      for (const categoryId of [2n ** 53n + 1n, int64Max]) await probe.create({ categoryId })
    },
    'no two listed or new animals have the same id': async probe => {
      const created = probe.exchanges.filter(({ status }) => status === 201)
      const { pets: listed } = await probe.list('?limit=100')
      for (const pets of [listed, created.map(({ json }) => json)]) {
        const ids = pets.map(showId)
        const repeated = ids.find((id, index) => ids.indexOf(id) !== index)
        if (repeated !== undefined) throw new Failed('another id for each animal', `id ${repeated} twice`)
      }
    },
  }),
  ...checks('listPets', {
    'GET /pets without a limit lists at most 20 animals': async probe => {
      await probe.list('', 20)
      await probe.list('?status=available', 20)
    },
    'GET /pets?status lists only animals with that status': async probe => {
      for (const status of petStatuses) await probe.list(`?limit=100&status=${status}`, 100, sameAs({ status }))
    },
    'a new animal is in the list of its status, as it was added': async probe => {
      const pet = await addPet(probe, 'pending')
      const { list, pets } = await probe.list('?limit=100&status=pending')
      const listed = pets.find(listed => showId(listed) === showId(pet))
      if (!listed && pets.length === 100) throw new Skipped('more animals are pending than one list shows')
      expectFields(list, sameAs(pet), listed ?? fail(list, `an animal with id ${showId(pet)}`))
    },
  }),
  ...checks('getPet', {
    'GET /pets/{petId} returns the animal as it was added or listed': async probe => {
      const pet = await findPet(probe)
      expectFields(await probe.send({ path: `/pets/${showId(pet)}` }, 200), sameAs(pet))
    },
    'GET /pets/{petId} with the id of no animal is refused': refuses(404, { path: `/pets/${absentId}` }),
  }),
  ...checks('Authentication', {
    'GET /pets without a key is refused': refuses(401, { path: '/pets', authorization: null }),
    'POST /pets without a key is refused': refuses(401, { ...post(newPet()), authorization: null }),
    'GET /pets/{petId} without a key is refused': refusesGet(null),
    'GET /pets with a wrong key is refused': refuses(401, { path: '/pets', authorization: wrongKey }),
    'POST /pets with a wrong key is refused': refuses(401, { ...post(newPet()), authorization: wrongKey }),
    'GET /pets/{petId} with a wrong key is refused': refusesGet(wrongKey),
  }),
  // The last checks judge the responses that the others have received.
  ...checks('Base address', {
    'responses are application/json': async ({ exchanges }) => {
      if (exchanges.length === 0) throw new Skipped('there was no response')
      for (const exchange of exchanges) {
        const type = exchange.headers.get('content-type') ?? 'no Content-Type'
        const isJson = /^application\/json\s*(;|$)/i.test(type)
        if (!isJson) fail(exchange, 'Content-Type: application/json', `returned ${exchange.status}, ${type}`)
      }
    },
  }),
  ...checks('Errors', {
    'every error is an Error with the HTTP status': async ({ exchanges }) => {
      const errors = exchanges.filter(({ status }) => status >= 400)
      if (errors.length === 0) throw new Skipped('there was no error')
      for (const error of errors) {
        expectFields(error, { code: string, message: string, ...sameAs({ status: error.status }) })
      }
    },
  }),
]

function checks(section: string, runs: Readonly<Record<string, Run>>): readonly Check[] {
  return Object.entries(runs).map(([name, run]) => ({ section, name, run, isEssential: false }))
}

function essentialChecks(section: string, runs: Readonly<Record<string, Run>>): readonly Check[] {
  return checks(section, runs).map(check => ({ ...check, isEssential: true }))
}

function post(body: string | undefined): ProbeRequest {
  return { method: 'POST', path: '/pets', body }
}

/** The server answers each of the requests with this status. */
function refuses(status: number, ...requests: readonly ProbeRequest[]): Run {
  return async probe => {
    for (const request of requests) await probe.send(request, status)
  }
}

function refusesPets(field: string, ...values: readonly unknown[]): Run {
  return refuses(400, ...values.map(value => post(newPet({ [field]: value }))))
}

function refusesGet(authorization: string | null): Run {
  return async probe => probe.send({ path: `/pets/${showId(await findPet(probe))}`, authorization }, 401)
}

const showId = (pet: unknown) => show(Object(pet)['id'])

/** Adds an animal with values that a server may change when it stores or reads them. */
async function addPet(probe: Probe, status: PetStatus) {
  const fields = { name: oddName, categoryId: int64Max, status }
  const { json } = await probe.create(fields, {})
  return { ...fields, id: Object(json)['id'] }
}

/** The first of the list if nothing can be added. */
async function findPet(probe: Probe) {
  if (!probe.target.readOnly) return addPet(probe, 'sold')
  const [pet] = (await probe.list('?limit=1')).pets
  if (!pet) throw new Skipped('the catalogue is empty, and this run only reads')
  const { id, name, categoryId, status } = Object(pet)
  return { id, name, categoryId, status }
}
