import type { Pet, PetStatus } from '../../pet.ts'
import { addAnimal, atLeast, moreThanDefault, someAnimal, statuses } from '../animals.ts'
import { type Check, fail, rules, skip } from '../check.ts'
import { expectPetField, itemsIn, petFields, petsIn, shown } from '../expectation.ts'
import { nextPage } from '../pages.ts'
import type { Answer, Probe } from '../probe.ts'

const resources = rules('contract', 'interface part 2, resources and their fields')
const listing = rules('contract', 'interface part 4.1, listing animals')
const limits = rules('contract', 'interface part 8, limits')

const pagesMax = 20

export const listChecks: readonly Check[] = [
  listing.reads('GET /pets is 200 with a JSON array', async probe => {
    itemsIn(await probe.send('/pets'))
  }),
  ...(['id', 'name', 'categoryId', 'status'] as const).map(field =>
    resources.reads(`the ${field} of every listed animal is ${petFields[field].expected}`, async probe => {
      await someAnimal(probe)
      const answer = await probe.send('/pets?limit=100')
      for (const item of itemsIn(answer)) expectPetField(item, field, answer)
    }),
  ),
  resources.reads('no two listed animals have the same id', async probe => {
    await atLeast(probe, 2)
    const answer = await probe.send('/pets?limit=100')
    const ids = petsIn(answer).map(({ id }) => id)
    const twice = ids.find((id, index) => ids.indexOf(id) !== index)
    if (twice !== undefined) fail('every id once', `${answer.asked} lists id ${twice} twice`)
  }),
  limits.reads('GET /pets without a limit lists at most 20 animals', async probe => {
    await atLeast(probe, moreThanDefault)
    expectAtMost(await probe.send('/pets'), 20)
  }),
  ...[1, 20, 100].map(limit =>
    limits.reads(`limit=${limit} is accepted, and lists at most so many animals`, async probe => {
      // In a small catalogue no more is shown than that the value is accepted.
      if (!probe.readOnly) await atLeast(probe, Math.min(limit + 1, moreThanDefault))
      expectAtMost(await probe.send(`/pets?limit=${limit}`), limit)
    }),
  ),
  ...statuses.map(status =>
    listing.reads(`status=${status} lists only such animals`, async probe => {
      await withAnother(probe, status)
      expectOnly(await probe.send(`/pets?limit=100&status=${status}`), status)
    }),
  ),
  listing.reads('limit and status hold together', async probe => {
    await atLeast(probe, 2, 'sold')
    const answer = await probe.send('/pets?limit=1&status=sold')
    expectAtMost(answer, 1)
    expectOnly(answer, 'sold')
  }),
  listing.writes('an animal that was added is in the list of its status', async probe => {
    const added = await addAnimal(probe, { status: '"pending"' })
    let answer = await probe.send('/pets?limit=100&status=pending')
    for (let pages = 1; !petsIn(answer).some(({ id }) => id === added.id); pages++) {
      const next = nextPage(answer)
      if (petsIn(answer).length < 100 && next === undefined)
        fail(`an animal with id ${added.id}`, shown(answer))
      if (next === undefined) skip('more animals are pending than a list shows, and there is no next link')
      if (pages === pagesMax) skip(`more animals are pending than ${pagesMax} pages show`)
      answer = await probe.send(next)
    }
  }),
]

function expectAtMost(answer: Answer, count: number): void {
  const { length } = petsIn(answer)
  if (length > count) fail(`at most ${count} animals`, `${answer.asked} lists ${length}`)
}

function expectOnly(answer: Answer, status: PetStatus): void {
  const other = petsIn(answer).find(pet => pet.status !== status)
  if (other) fail(`only animals that are ${status}`, `${answer.asked} lists ${describe(other)}`)
}

function describe({ id, status }: Pet): string {
  return `id ${id}, which ${status === undefined ? 'has no status' : `is ${status}`}`
}

/** A filter shows nothing in a catalogue where all animals have the same status. */
async function withAnother(probe: Probe, status: PetStatus): Promise<void> {
  const pets = petsIn(await probe.send('/pets?limit=100'))
  if (pets.some(pet => pet.status !== status)) return
  await addAnimal(probe, { status: status === 'sold' ? '"pending"' : '"sold"' })
}
