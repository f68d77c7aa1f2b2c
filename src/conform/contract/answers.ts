import { absentId, animal, someAnimal } from '../animals.ts'
import { type Check, rules } from '../check.ts'
import { errorFields, expectErrorField, expectJsonType, expectStatus, jsonIn } from '../expectation.ts'
import type { Answer, Probe } from '../probe.ts'

const overview = rules('contract', 'interface part 1, what the service does')
const errors = rules('contract', 'interface part 7, errors')

export const answerChecks: readonly Check[] = [
  overview.reads('answers are application/json', async probe => {
    const { id } = await someAnimal(probe)
    for (const path of ['/pets', `/pets/${id}`]) expectJsonType(await probe.send(path))
  }),
  errors.reads('errors are application/json', async probe => {
    for (const answer of await everyError(probe)) expectJsonType(answer)
  }),
  ...(['code', 'message', 'status'] as const).map(field =>
    errors.reads(`the ${field} of every Error is ${errorFields[field].expected}`, async probe => {
      for (const answer of await everyError(probe)) expectErrorField(jsonIn(answer), field, answer)
    }),
  ),
]

/** One of each kind: 401, 404 and, where the run may write, 400. */
async function everyError(probe: Probe): Promise<readonly Answer[]> {
  const unauthorized = await probe.send('/pets', { authorization: null })
  expectStatus(unauthorized, 401)
  const absent = await probe.send(`/pets/${absentId()}`)
  expectStatus(absent, 404)
  if (probe.readOnly) return [unauthorized, absent]
  const invalid = await probe.post(animal({ name: undefined }))
  expectStatus(invalid, 400)
  return [unauthorized, absent, invalid]
}
