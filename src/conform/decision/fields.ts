import { int64Min, isJsonObject } from '../../int64.ts'
import { animal, animalName } from '../animals.ts'
import { type Check, fail, rules } from '../check.ts'
import { errorIn, expectHeader, expectNamed, jsonIn, petIn, shown } from '../expectation.ts'

const resources = rules('decision', 'docs/interface.md, Resources')
const strictness = rules('decision', 'docs/interface.md, Strict handling')

const strict = { Prefer: 'handling=strict' }
const nameCharsMax = 1_000

export const fieldDecisions: readonly Check[] = [
  ...[
    ['that is empty', ''],
    ['that is all white space', ' \t\n\u00a0'],
    ['of more than 1,000 characters', 'conform '.padEnd(nameCharsMax + 1, 'x')],
    ['with U+0000', 'conform \0'],
    ['with an unpaired surrogate', 'conform \ud800'],
  ].map(([what, name]) =>
    resources.writes(`a name ${what} is 400`, async probe => {
      expectNamed(await probe.post(animal({ name: JSON.stringify(name) })), 400, 'name')
    }),
  ),
  ...[
    ['of 1,000 characters, most of them surrogate pairs', `conform ${'🐕'.repeat(nameCharsMax - 8)}`],
    ['with spaces around it and letters of two parts', `  ${animalName()} e\u0301 \u00e9 `],
  ].map(([what, name]) =>
    resources.writes(`a name ${what} is kept exactly`, async probe => {
      const answer = await probe.post(animal({ name: JSON.stringify(name) }))
      if (petIn(answer, 201).name !== name) fail('the name as it was sent', shown(answer))
    }),
  ),
  resources.writes('an integer may be written with a fraction and an exponent', async probe => {
    const answer = await probe.post(animal({ categoryId: '1.50e2' }))
    if (petIn(answer, 201).categoryId !== 150n) fail('the categoryId 150 for 1.50e2', shown(answer))
  }),
  resources.writes('a categoryId may be any int64', async probe => {
    const answer = await probe.post(animal({ categoryId: String(int64Min) }))
    if (petIn(answer, 201).categoryId !== int64Min) fail(`the categoryId ${int64Min}`, shown(answer))
  }),
  resources.writes('a status that is left out stays absent', async probe => {
    const answer = await probe.post(animal())
    if (petIn(answer, 201).status !== undefined) fail('an animal without a status', shown(answer))
  }),
  resources.writes('a status of null is 400', async probe => {
    expectNamed(await probe.post(animal({ status: 'null' })), 400, 'status')
  }),
  strictness.writes('unknown properties, id among them, are ignored', async probe => {
    const answer = await probe.post(animal({ id: '-7', colour: '"red"' }))
    if (petIn(answer, 201).id === -7n) fail('an id of its own', shown(answer))
    const pet = jsonIn(answer)
    if (isJsonObject(pet) && Object.hasOwn(pet, 'colour')) fail('an animal without a colour', shown(answer))
  }),
  strictness.writes('with strict handling an unknown property is 400, and named', async probe => {
    const answer = await probe.post(animal({ colour: '"red"' }), { headers: strict })
    expectNamed(answer, 400, 'colour')
    expectHeader(answer, 'Preference-Applied', /^handling=strict$/, 'handling=strict')
  }),
  strictness.reads('an unknown parameter is ignored', async probe => {
    const answer = await probe.send('/pets?limit=1&colour=red')
    if (answer.status !== 200) fail('status 200', shown(answer))
  }),
  strictness.reads('with strict handling an unknown parameter is 400, and named', async probe => {
    const answer = await probe.send('/pets?limit=1&colour=red', { headers: strict })
    expectNamed(answer, 400, 'colour')
    expectHeader(answer, 'Preference-Applied', /^handling=strict$/, 'handling=strict')
  }),
  strictness.writes('a refused animal lists every problem', async probe => {
    const answer = await probe.post(animal({ name: '7', categoryId: undefined, status: '"lost"' }))
    errorIn(answer, 400)
    expectNamed(answer, 400, 'name', 'categoryId', 'status')
  }),
]
