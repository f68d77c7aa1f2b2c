// The ceiling of the runtime: Bun.serve answers the bytes and headers that the petstore would, and looks at nothing.
import { readAnswers } from '../harness/our-answers.ts'

const [port, file = ''] = process.argv.slice(2)
const { list, get } = readAnswers(file)
const listInit = { headers: new Headers(list.headers) }
const getInit = { headers: new Headers(get.headers) }

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  development: false,
  routes: {
    '/v1/pets': () => new Response(list.body, listInit),
    '/v1/pets/*': () => new Response(get.body, getInit),
  },
})
