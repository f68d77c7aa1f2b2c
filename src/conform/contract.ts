import { int64Max } from '../int64.ts'
import { limitDefault } from '../page.ts'
import type { Pet, PetStatus } from '../pet.ts'
import { absentId, type Check, newPet, type Probe, petName, post, rules, wrongCredential } from './check.ts'
import { type Exchange, errorFields, fail, petFields, skip } from './exchange.ts'

const base = rules('contract', 'Base address')
const authentication = rules('contract', 'Authentication')
const resources = rules('contract', 'Resources')
const listPets = rules('contract', 'listPets')
const createPet = rules('contract', 'createPet')
const getPet = rules('contract', 'getPet')
const errors = rules('contract', 'Errors')
const limits = rules('contract', 'Limits')

const statuses = ['available', 'pending', 'sold'] as const satisfies readonly PetStatus[]

const credentialChecks: readonly Check[] = [
  base.reads('the base address ends in /v1', async ({ baseUrl }) => {
    if (!baseUrl.endsWith('/v1')) fail('a base address that ends in /v1', baseUrl)
  }),
  ...[
    { what: 'without a key', authorization: null },
    { what: 'with a wrong key', authorization: wrongCredential },
  ].flatMap(({ what, authorization }) => [
    authentication.refuses(`GET /pets ${what}`, 401, [{ path: '/pets', authorization }]),
    authentication.refuses(`POST /pets ${what}`, 401, [post(newPet(), { authorization })]),
    authentication.reads(`GET /pets/{petId} ${what} is 401`, async probe => {
      // An existing animal, if there is one: its path cannot be 404.
      const [first] = (await probe.send('/pets?limit=1')).pets()
      const path = `/pets/${first?.id ?? absentId()}`
      const refused = await probe.send({ path, authorization })
      refused.error(401)
    }),
  ]),
]

/** The first integer that a double cannot hold. */
const beyondDoubles = 2n ** 53n + 1n

const createChecks: readonly Check[] = [
  createPet.writes('POST /pets is 201 with the Pet and its id', async probe => {
    await probe.addPet({ status: '"available"' })
  }),
  createPet.writes('POST /pets returns the name and the categoryId as sent', async probe => {
    const name = `${petName()} "é" 🐕`
    const created = await probe.create({ name: JSON.stringify(name), categoryId: '1' })
    const { id, status: _, ...pet } = created.pet(201)
    expectSame(created, { id, ...pet }, { id, name, categoryId: 1n })
  }),
  ...statuses.map(status =>
    createPet.writes(`POST /pets accepts the status ${status}`, async probe => {
      const created = await probe.create({ status: JSON.stringify(status) })
      created.expect(created.pet(201).status === status, `the status ${status}, as sent`)
    }),
  ),
  createPet.writes('POST /pets accepts an animal without a status', async probe => {
    await probe.addPet()
  }),
  resources.writes('two new animals get different ids', async probe => {
    const { id } = await probe.addPet()
    if (id === (await probe.addPet()).id) fail('another id for the second animal', `${id} for both`)
  }),
  ...[beyondDoubles, int64Max].map(categoryId =>
    resources.writes(`POST /pets returns the categoryId ${categoryId} exactly`, async probe => {
      const created = await probe.create({ categoryId: String(categoryId) })
      created.expect(created.pet(201).categoryId === categoryId, `the categoryId ${categoryId}`)
    }),
  ),
]

/** One check for each row. */
const invalidBodies: readonly (readonly [what: string, ...bodies: (string | undefined)[]])[] = [
  ['without a body', undefined],
  ['without a name', newPet({ name: undefined })],
  ['without a categoryId', newPet({ categoryId: undefined })],
  ['with a name that is not a string', ...['42', 'null', 'true', '["Rex"]', '{}'].map(name => newPet({ name }))],
  [
    'with a categoryId that is not an integer',
    ...['"7"', '1.5', 'true', 'null', '[7]'].map(categoryId => newPet({ categoryId })),
  ],
  ['with a categoryId above 64 bits', newPet({ categoryId: String(int64Max + 1n) })],
  ['with an unknown status', ...['"lost"', '"Available"', '""', '7'].map(status => newPet({ status }))],
  ['with a body that is not an object', '[]', '"Rex"', '7', 'null'],
  ['with a body that is not JSON', '{"name":', 'name=Rex'],
]

const invalidBodyChecks: readonly Check[] = invalidBodies.map(([what, ...bodies]) => {
  const requests = bodies.map(body => post(body))
  return createPet.refuses(`POST /pets ${what}`, 400, requests)
})

const pagesMax = 20
const aboveDefault = limitDefault + 1

const listChecks: readonly Check[] = [
  listPets.reads('GET /pets is 200 with a JSON array', async probe => {
    const response = await probe.send('/pets')
    response.items()
  }),
  ...Object.entries(petFields).map(([field, rule]) =>
    resources.reads(`the ${field} of every listed animal is ${rule.expected}`, async probe => {
      await probe.anyPet()
      const list = await probe.send('/pets?limit=100')
      for (const item of list.items()) list.expectField(item, field, rule)
    }),
  ),
  resources.reads('no two listed animals have the same id', async probe => {
    await probe.ensurePets(2)
    const list = await probe.send('/pets?limit=100')
    const ids = list.pets().map(({ id }) => id)
    const repeated = ids.find((id, index) => ids.indexOf(id) !== index)
    list.expect(repeated === undefined, 'every id once', `lists id ${repeated} twice`)
  }),
  limits.reads(`GET /pets without a limit lists at most ${limitDefault} animals`, async probe => {
    await probe.ensurePets(aboveDefault)
    expectAtMost(limitDefault, await probe.send('/pets'))
  }),
  ...[1, 20, 100].map(limit =>
    limits.reads(`GET /pets?limit=${limit} is accepted and lists no more animals`, async probe => {
      // In a small catalogue, this shows only that the value is accepted.
      if (!probe.readOnly) await probe.ensurePets(Math.min(limit + 1, aboveDefault))
      expectAtMost(limit, await probe.send(`/pets?limit=${limit}`))
    }),
  ),
  ...statuses.map(status =>
    listPets.reads(`GET /pets?status=${status} lists only animals with that status`, async probe => {
      await ensureOtherStatus(probe, status)
      expectOnly(status, await probe.send(`/pets?limit=100&status=${status}`))
    }),
  ),
  listPets.reads('GET /pets applies limit and status together', async probe => {
    await probe.ensurePets(2, 'sold')
    const list = await probe.send('/pets?limit=1&status=sold')
    expectAtMost(1, list)
    expectOnly('sold', list)
  }),
  listPets.writes('a new animal is in the list of its status', async probe => {
    const added = await probe.addPet({ status: '"pending"' })
    let list = await probe.send('/pets?limit=100&status=pending')
    for (let pages = 1; !list.pets().some(({ id }) => id === added.id); pages++) {
      const next = list.nextPath()
      if (next === undefined) {
        list.expect(list.pets().length >= 100, `an animal with id ${added.id}`)
        skip('more animals are pending than one list shows, and there is no next link')
      }
      if (pages === pagesMax) skip(`more animals are pending than ${pagesMax} pages show`)
      list = await probe.send(next)
    }
  }),
]

function expectAtMost(count: number, list: Exchange): void {
  const { length } = list.pets()
  list.expect(length <= count, `at most ${count} animals`, `lists ${length}`)
}

function expectOnly(status: PetStatus, list: Exchange): void {
  const other = list.pets().find(pet => pet.status !== status)
  const found = `lists id ${other?.id} with the status ${other?.status ?? 'absent'}`
  list.expect(other === undefined, `only animals with the status ${status}`, found)
}

/** A filter shows nothing if all animals have the same status. */
async function ensureOtherStatus(probe: Probe, status: PetStatus): Promise<void> {
  const pets = (await probe.send('/pets?limit=100')).pets()
  if (pets.every(pet => pet.status === status)) {
    await probe.addPet({ status: status === 'sold' ? '"pending"' : '"sold"' })
  }
}

const getChecks: readonly Check[] = [
  getPet.reads('GET /pets/{petId} returns the same animal as the list', async probe => {
    const listed = await probe.anyPet()
    const got = await probe.send(`/pets/${listed.id}`)
    expectSame(got, got.pet(200), listed)
  }),
  getPet.writes('GET /pets/{petId} returns the same animal as POST /pets', async probe => {
    const added = await probe.addPet({ categoryId: String(beyondDoubles), status: '"sold"' })
    const got = await probe.send(`/pets/${added.id}`)
    expectSame(got, got.pet(200), added)
  }),
  getPet.refuses('GET /pets/{petId} with the id of no animal', 404, [{ path: `/pets/${absentId()}` }]),
]

function expectSame(exchange: Exchange, found: Pet, pet: Pet): void {
  for (const field of ['id', 'name', 'categoryId', 'status'] as const) {
    exchange.expect(found[field] === pet[field], `the ${field} ${pet[field] ?? 'absent'}`)
  }
}

const bodyChecks: readonly Check[] = [
  base.reads('responses are application/json', async probe => {
    const { id } = await probe.anyPet()
    for (const path of ['/pets', `/pets/${id}`]) (await probe.send(path)).expectJsonType()
  }),
  errors.reads('errors are application/json', async probe => {
    for (const exchange of await errorExchanges(probe)) exchange.expectJsonType()
  }),
  ...Object.entries(errorFields).map(([field, rule]) =>
    errors.reads(`the ${field} of every Error is ${rule.expected}`, async probe => {
      for (const exchange of await errorExchanges(probe)) exchange.expectField(exchange.json(), field, rule)
    }),
  ),
]

/** A 401, a 404 and, if the run may write, a 400. */
async function errorExchanges(probe: Probe): Promise<readonly Exchange[]> {
  const unauthorized = await probe.send({ path: '/pets', authorization: null })
  unauthorized.expectStatus(401)
  const absent = await probe.send(`/pets/${absentId()}`)
  absent.expectStatus(404)
  if (probe.readOnly) return [unauthorized, absent]
  const invalid = await probe.send(post(newPet({ name: undefined })))
  invalid.expectStatus(400)
  return [unauthorized, absent, invalid]
}

/** The checks that add animals come first: later checks use those animals. */
export const contractChecks: readonly Check[] = [
  ...credentialChecks,
  ...createChecks,
  ...invalidBodyChecks,
  ...listChecks,
  ...getChecks,
  ...bodyChecks,
]
