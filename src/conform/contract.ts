import { int64Max } from '../int64.ts'
import { limitDefault } from '../page.ts'
import type { PetStatus } from '../pet.ts'
import { type Check, checksOf, creates, forEach, refuses } from './check.ts'
import type { Exchange, Probe } from './exchange.ts'
import {
  absentId,
  errorFields,
  fail,
  newPet,
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
const aboveDefault = limitDefault + 1
const pagesMax = 20
const notIntegers = ['7', 1.5, true, null, [7]]

/** The checks that add animals come first: later checks use those animals. */
export const contractChecks: readonly Check[] = checksOf('contract', {
  Authentication: {
    ...refusesCredential('without a key', null),
    ...refusesCredential('with a wrong key', wrongBearer),
  },
  createPet: {
    ...creates('POST /pets is 201 with the Pet and its id', { status: '"available"' }),
    ...creates('POST /pets returns the name and the categoryId as sent', { name: JSON.stringify(odd.name) }, odd),
    ...creates('POST /pets accepts the status available', { status: '"available"' }, { status: 'available' }),
    ...creates('POST /pets accepts the status pending', { status: '"pending"' }, { status: 'pending' }),
    ...creates('POST /pets accepts the status sold', { status: '"sold"' }, { status: 'sold' }),
    ...creates('POST /pets accepts an animal without a status', {}),
    ...refuses('POST /pets without a body', 400, post(undefined)),
    ...refuses('POST /pets without a name', 400, postEach('name', [undefined])),
    ...refuses('POST /pets without a categoryId', 400, postEach('categoryId', [undefined])),
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
    ...forEach([beyondDoubles, int64Max], categoryId => [
      `POST /pets returns the categoryId ${categoryId} exactly`,
      async probe => (await probe.create({ categoryId: String(categoryId) })).pet(201, { categoryId }),
    ]),
    'two new animals get different ids': async probe => {
      const { id } = await probe.addPet()
      if (id === (await probe.addPet()).id) fail('another id for the second animal', `${id} for both`)
    },
    ...forEach(Object.entries(petFields), ([field, rule]) => [
      `the ${field} of every listed animal is ${rule.expected}`,
      async probe => {
        await probe.ensurePets(1)
        const list = await probe.send('/pets?limit=100')
        for (const item of list.items()) list.expectField(item, field, rule)
      },
    ]),
    'no two listed animals have the same id': async probe => {
      await probe.ensurePets(2)
      const list = await probe.send('/pets?limit=100')
      const ids = list.pets().map(({ id }) => id)
      const repeated = ids.find((id, index) => ids.indexOf(id) !== index)
      list.expect(repeated === undefined, 'every id once', `lists id ${repeated} twice`)
    },
  },
  Limits: {
    [`GET /pets without a limit lists at most ${limitDefault} animals`]: async probe => {
      await probe.ensurePets(aboveDefault)
      expectAtMost(limitDefault, await probe.send('/pets'))
    },
    ...forEach([1, 20, 100], limit => [
      `GET /pets?limit=${limit} is accepted and lists no more animals`,
      async probe => {
        // In a small catalogue, this shows only that the value is accepted.
        if (!probe.target.readOnly) await probe.ensurePets(Math.min(limit + 1, aboveDefault))
        expectAtMost(limit, await probe.send(`/pets?limit=${limit}`))
      },
    ]),
  },
  listPets: {
    'GET /pets is 200 with a JSON array': async probe => (await probe.send('/pets')).items(),
    ...forEach(statuses, status => [
      `GET /pets?status=${status} lists only animals with that status`,
      async probe => {
        // A filter shows nothing if all animals have the same status.
        await probe.ensurePets(1, status === 'sold' ? 'pending' : 'sold')
        expectOnly(status, await probe.send(`/pets?limit=100&status=${status}`))
      },
    ]),
    'GET /pets applies limit and status together': async probe => {
      await probe.ensurePets(2, 'sold')
      const list = await probe.send('/pets?limit=1&status=sold')
      expectAtMost(1, list)
      expectOnly('sold', list)
    },
    'a new animal is in the list of its status': async probe => {
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
    },
  },
  getPet: {
    'GET /pets/{petId} returns the same animal as POST /pets and the list': async probe => {
      const fields = { categoryId: String(beyondDoubles), status: '"sold"' }
      const listed = await probe.anyPet()
      for (const pet of probe.target.readOnly ? [listed] : [listed, await probe.addPet(fields)]) {
        const got = await probe.send(`/pets/${pet.id}`)
        got.pet(200, { status: undefined, ...pet })
      }
    },
    ...refuses('GET /pets/{petId} with the id of no animal', 404, `/pets/${absentId()}`),
  },
  'Base address': {
    'the base address ends in /v1': async ({ target: { baseUrl } }) => {
      if (!baseUrl.endsWith('/v1')) fail('a base address that ends in /v1', baseUrl)
    },
    'responses are application/json': async probe => {
      for (const path of ['/pets', await probe.petPath()]) (await probe.send(path)).expectJsonType()
    },
  },
  Errors: {
    'errors are application/json': probe => expectErrors(probe, error => error.expectJsonType()),
    ...forEach(Object.entries(errorFields), ([field, rule]) => [
      `the ${field} of every Error is ${rule.expected}`,
      probe => expectErrors(probe, error => error.expectField(error.json(), field, rule)),
    ]),
  },
})

function refusesCredential(what: string, authorization: string | null) {
  return {
    ...refuses(`GET /pets ${what}`, 401, { path: '/pets', authorization }),
    ...refuses(`POST /pets ${what}`, 401, post(newPet(), { authorization })),
    ...refuses(`GET /pets/{petId} ${what}`, 401, async probe => ({ path: await probe.petPath(), authorization })),
  }
}

/** Judges a 401, a 404 and, if the run may write, a 400. */
async function expectErrors(probe: Probe, expect: (error: Exchange) => void): Promise<void> {
  expect((await probe.send({ path: '/pets', authorization: null })).expectStatus(401))
  expect((await probe.send(`/pets/${absentId()}`)).expectStatus(404))
  if (!probe.target.readOnly) expect((await probe.create({ name: undefined })).expectStatus(400))
}

function expectAtMost(count: number, list: Exchange): void {
  const { length } = list.pets()
  list.expect(length <= count, `at most ${count} animals`, `lists ${length}`)
}

function expectOnly(status: PetStatus, list: Exchange): void {
  const other = list.pets().find(pet => pet.status !== status)
  const found = `lists id ${other?.id} with the status ${other?.status ?? 'absent'}`
  list.expect(other === undefined, `only animals with the status ${status}`, found)
}
