import { int64Max } from '../../int64.ts'
import { addAnimal, animal, animalName, statuses } from '../animals.ts'
import { type Check, fail, rules } from '../check.ts'
import { expectSamePet, petIn, shown } from '../expectation.ts'

const resources = rules('contract', 'interface part 2, resources and their fields')
const creation = rules('contract', 'interface part 4.2, adding an animal')

const pastDoubles = 2n ** 53n + 1n

export const createChecks: readonly Check[] = [
  creation.writes('POST /pets is 201 with the Pet and its id', async probe => {
    petIn(await probe.post(animal()), 201)
  }),
  creation.writes('POST /pets keeps the name and the categoryId', async probe => {
    const name = `${animalName()} "é" 🐕`
    const answer = await probe.post(animal({ name: JSON.stringify(name), categoryId: '1' }))
    const { status: _, ...kept } = petIn(answer, 201)
    expectSamePet(kept, { name, categoryId: 1n }, answer)
  }),
  ...statuses.map(status =>
    creation.writes(`POST /pets takes the status ${status}`, async probe => {
      const answer = await probe.post(animal({ status: JSON.stringify(status) }))
      const { status: kept } = petIn(answer, 201)
      if (kept !== status) fail(`the status ${status}, as it was sent`, shown(answer))
    }),
  ),
  creation.writes('POST /pets takes an animal without a status', async probe => {
    petIn(await probe.post(animal({ status: undefined })), 201)
  }),
  resources.writes('two animals that are added get two ids', async probe => {
    const { id } = await addAnimal(probe)
    const other = await addAnimal(probe)
    if (id === other.id) fail('another id for the second animal', `${id} for both`)
  }),
  ...[pastDoubles, int64Max].map(categoryId =>
    resources.writes(`a categoryId of ${categoryId} comes back digit for digit`, async probe => {
      const answer = await probe.post(animal({ categoryId: String(categoryId) }))
      const kept = petIn(answer, 201)
      if (kept.categoryId !== categoryId) fail(`the categoryId ${categoryId}`, shown(answer))
    }),
  ),
]
