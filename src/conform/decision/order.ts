import { absentId, animal, someAnimal } from '../animals.ts'
import { type Check, fail, rules } from '../check.ts'
import { errorIn, expectHeader, expectStatus } from '../expectation.ts'
import type { Answer } from '../probe.ts'

const order = rules('decision', 'docs/interface.md, The order in which a request is judged')
const operations = rules('decision', 'docs/interface.md, Operations')
const absent = rules('decision', 'docs/interface.md, What does not exist')

const nowhere = '/conform-nothing-is-here'
const brokenBody = '{"name":'
const largeBody = ' '.repeat(64 * 1024 + 1)

export const orderDecisions: readonly Check[] = [
  order.reads('an unknown path is 401 without a key', async probe => {
    errorIn(await probe.send(nowhere, { authorization: null }), 401)
  }),
  order.reads('an unknown path is 404 with a key', async probe => {
    errorIn(await probe.send(nowhere), 404)
  }),
  order.writes('the key is judged before the method', async probe => {
    errorIn(await probe.send('/pets', { method: 'PUT', authorization: null }), 401)
  }),
  order.writes('the path is judged before the method', async probe => {
    errorIn(await probe.send(nowhere, { method: 'PUT' }), 404)
  }),
  order.writes('the key is judged before the body', async probe => {
    errorIn(await probe.post(brokenBody, { authorization: null }), 401)
  }),
  order.writes('the type of a body is judged before its content', async probe => {
    errorIn(await probe.post(brokenBody, { headers: { 'Content-Type': 'text/plain' } }), 415)
  }),
  order.writes('the type of a body is judged before its size', async probe => {
    errorIn(await probe.post(largeBody, { headers: { 'Content-Type': 'text/plain' } }), 415)
  }),
  operations.writes('PUT /pets is 405, and Allow lists GET, HEAD and POST', async probe => {
    expectAllowed(await probe.send('/pets', { method: 'PUT', body: animal() }), 'GET', 'HEAD', 'POST')
  }),
  operations.writes('POST /pets/{petId} is 405, and Allow lists GET and HEAD', async probe => {
    expectAllowed(await probe.send(`/pets/${absentId()}`, { method: 'POST', body: animal() }), 'GET', 'HEAD')
  }),
  operations.reads('HEAD /pets has the headers of GET, and no body', async probe => {
    await someAnimal(probe)
    const path = '/pets?limit=1'
    expectHeadOf(await probe.send(path), await probe.send(path, { method: 'HEAD' }))
  }),
  operations.reads('HEAD /pets/{petId} has the headers of GET, and no body', async probe => {
    const path = `/pets/${(await someAnimal(probe)).id}`
    expectHeadOf(await probe.send(path), await probe.send(path, { method: 'HEAD' }))
  }),
  absent.reads('GET /store/orders is 404', async probe => {
    errorIn(await probe.send('/store/orders'), 404)
  }),
]

function expectAllowed(answer: Answer, ...methods: string[]): void {
  errorIn(answer, 405)
  const allow = expectHeader(answer, 'Allow', /./, methods.join(', '))
  const listed = allow.split(',').map(method => method.trim())
  if (listed.toSorted().join() !== methods.join()) fail(`Allow: ${methods.join(', ')}`, `Allow: ${allow}`)
}

/** Headers that tell of one answer or one connection, and not of what is at the path. */
const passing = /^(date|x-request-id|content-length|transfer-encoding|connection|keep-alive|ratelimit)$/

function expectHeadOf(get: Answer, head: Answer): void {
  expectStatus(head, get.status)
  if (head.text !== '') fail('no body', `${head.asked} answered ${head.text}`)
  for (const [name, value] of get.headers) {
    if (passing.test(name) || head.headers.get(name) === value) continue
    fail(`${name}: ${value}, as GET has it`, `${head.asked} answered ${name}: ${head.headers.get(name)}`)
  }
}
