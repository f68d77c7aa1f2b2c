// From fixed bytes towards our list: each step does what the steps before it do. None of it is our code, only what every
// answer of ours needs of the runtime.
import { readAnswers } from '../harness/our-answers.ts'

const [port, file = '', last] = process.argv.slice(2)
const { list } = readAnswers(file)
const headers = new Headers(list.headers)
const credential = `Bearer ${process.env['PETSTORE_API_KEY']}`
const stepsTaken = Number(last)

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  development: false,
  fetch(request) {
    if (stepsTaken >= 1 && !request.url.endsWith('/v1/pets')) return new Response(null, { status: 404 })
    if (stepsTaken >= 2 && request.headers.get('authorization') !== credential)
      return new Response(null, { status: 401 })
    if (stepsTaken >= 3)
      headers.set('X-Request-Id', request.headers.get('x-request-id') ?? crypto.randomUUID())
    return new Response(list.body, { headers })
  },
})
