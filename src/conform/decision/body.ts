import { addAnimal, animal } from '../animals.ts'
import { type Check, fail, rules } from '../check.ts'
import { errorIn, expectJsonType, petIn, shown } from '../expectation.ts'

const creation = rules('decision', 'docs/interface.md, createPet')
const base = rules('decision', 'docs/interface.md, Base address')

const bodyBytesMax = 64 * 1024

export const bodyDecisions: readonly Check[] = [
  creation.writes('a Content-Type may have parameters', async probe => {
    petIn(await probe.post(animal(), { headers: { 'Content-Type': 'application/json; charset=utf-8' } }), 201)
  }),
  creation.writes('a body without a Content-Type is taken as JSON', async probe => {
    // Bytes: for a string, fetch would add a type by itself.
    const body = new TextEncoder().encode(animal())
    petIn(await probe.send('/pets', { method: 'POST', body }), 201)
  }),
  creation.writes('a body of another type is 415', async probe => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
      errorIn(await probe.post(animal(), { headers: { 'Content-Type': type } }), 415)
    }
  }),
  creation.writes('a body with a Content-Encoding is 415', async probe => {
    errorIn(await probe.post(animal(), { headers: { 'Content-Encoding': 'gzip' } }), 415)
  }),
  creation.writes('an empty body is 400 whatever its type', async probe => {
    errorIn(await probe.post('', { headers: { 'Content-Type': 'text/plain' } }), 400)
  }),
  creation.writes('a body of 64 KiB is read', async probe => {
    errorIn(await probe.post('{}'.padEnd(bodyBytesMax)), 400)
  }),
  creation.writes('a body of more than 64 KiB is 413', async probe => {
    errorIn(await probe.post('{}'.padEnd(bodyBytesMax + 1)), 413)
  }),
  base.writes('a body that is not UTF-8 is 400', async probe => {
    const latin1 = Uint8Array.from(Buffer.from(animal({ name: '"conform Ren\u00e9"' }), 'latin1'))
    errorIn(await probe.post(undefined, { body: latin1 }), 400)
  }),
  base.reads('answers are JSON whatever Accept says', async probe => {
    expectJsonType(await probe.send('/pets?limit=1', { headers: { Accept: 'text/html' } }))
  }),
  creation.writes('Location has the address of the animal', async probe => {
    const answer = await probe.post(animal())
    const { id } = petIn(answer, 201)
    const location = answer.headers.get('location')
    const expected = `a Location that ends in /pets/${id}`
    if (location === null) fail(expected, `${answer.asked} answered without it`)
    if (!/^(https?:\/)?\//.test(location) || !location.endsWith(`/pets/${id}`)) fail(expected, location)
  }),
  creation.writes('an animal gets a higher id than those before it', async probe => {
    const before = await addAnimal(probe)
    const answer = await probe.post(animal())
    if (petIn(answer, 201).id <= before.id) fail(`an id above ${before.id}`, shown(answer))
  }),
]
