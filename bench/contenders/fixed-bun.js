// The upper limit of Bun: it sends the petstore's bytes and headers and reads nothing of the request but the path.
import { readFileSync } from 'node:fs'

const [port, file] = process.argv.slice(2)
const { list, get } = JSON.parse(readFileSync(file, 'utf8'))
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
