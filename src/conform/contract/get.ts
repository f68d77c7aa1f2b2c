import { absentId, addAnimal, someAnimal } from '../animals.ts'
import { type Check, fail, rules } from '../check.ts'
import { errorIn, expectSamePet, petIn, shown } from '../expectation.ts'

const fetching = rules('contract', 'interface part 4.3, getting an animal (deprecated)')

export const getChecks: readonly Check[] = [
  fetching.reads('GET /pets/{petId} still answers, with the animal of that id', async probe => {
    const listed = await someAnimal(probe)
    const answer = await probe.send(`/pets/${listed.id}`)
    const { id } = petIn(answer, 200)
    if (id !== listed.id) fail(`the animal with id ${listed.id}`, shown(answer))
  }),
  fetching.reads('GET /pets/{petId} gives the animal as the list has it', async probe => {
    const listed = await someAnimal(probe)
    const answer = await probe.send(`/pets/${listed.id}`)
    expectSamePet(petIn(answer, 200), listed, answer)
  }),
  fetching.writes('GET /pets/{petId} gives the animal that was added', async probe => {
    const added = await addAnimal(probe, { categoryId: '9007199254740993', status: '"sold"' })
    const answer = await probe.send(`/pets/${added.id}`)
    expectSamePet(petIn(answer, 200), added, answer)
  }),
  fetching.reads('GET /pets/{petId} is 404 where no animal has the id', async probe => {
    errorIn(await probe.send(`/pets/${absentId()}`), 404)
  }),
]
