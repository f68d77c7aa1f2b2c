import { animal } from '../animals.ts'
import { type Check, fail, rules } from '../check.ts'
import { errorIn, expectHeader, petIn, shown } from '../expectation.ts'

const retrying = rules('decision', 'docs/interface.md, Retrying a creation')

function once(key = `conform-${crypto.randomUUID()}`): { readonly 'Idempotency-Key': string } {
  return { 'Idempotency-Key': key }
}

export const idempotencyDecisions: readonly Check[] = [
  retrying.writes('a creation that is sent again with its Idempotency-Key adds nothing', async probe => {
    const headers = once()
    const body = animal()
    const { id } = petIn(await probe.post(body, { headers }), 201)
    const again = await probe.post(body, { headers })
    if (petIn(again, 201).id !== id) fail(`the animal with id ${id} again`, shown(again))
    expectHeader(again, 'Idempotency-Replayed', /^true$/, 'true')
  }),
  retrying.writes('an Idempotency-Key is the same in quotes and without', async probe => {
    const headers = once()
    const body = animal()
    const { id } = petIn(await probe.post(body, { headers }), 201)
    const again = await probe.post(body, { headers: once(`"${headers['Idempotency-Key']}"`) })
    if (petIn(again, 201).id !== id) fail(`the animal with id ${id} again`, shown(again))
  }),
  retrying.writes('an Idempotency-Key that was used for another animal is 422', async probe => {
    const headers = once()
    petIn(await probe.post(animal(), { headers }), 201)
    errorIn(await probe.post(animal(), { headers }), 422)
  }),
  retrying.writes('an Idempotency-Key of more than 255 characters is 400', async probe => {
    errorIn(await probe.post(animal(), { headers: once('k'.repeat(256)) }), 400)
  }),
  retrying.writes('a creation that failed leaves its Idempotency-Key free', async probe => {
    const headers = once()
    errorIn(await probe.post(animal({ name: undefined }), { headers }), 400)
    const mended = await probe.post(animal(), { headers })
    petIn(mended, 201)
    if (mended.headers.has('idempotency-replayed')) fail('a new animal', shown(mended))
  }),
]
