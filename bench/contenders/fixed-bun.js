// The upper limit of Bun: it sends the petstore's bytes and headers and reads nothing of the request but the path.
import { join } from 'node:path'
import { credential, port } from './pets.js'

/** Every server sets these headers by itself. */
const serverHeaders = ['date', 'content-length', 'connection', 'keep-alive', 'transfer-encoding']

async function capture(url) {
  const response = await fetch(url, { headers: { authorization: credential } })
  const headers = [...response.headers].filter(([name]) => !serverHeaders.includes(name))
  return { body: await response.text(), init: { headers: new Headers(headers) } }
}

const program = join(import.meta.dir, '../../bin/petstore')
const petstore = Bun.spawn([program, 'serve', '--port', '0', '--log-level', 'warn'], { stdout: 'pipe' })
const { value: greeting } = await petstore.stdout.getReader().read()
const [, address] = / serves (\S+)/.exec(new TextDecoder().decode(greeting))
const list = await capture(`${address}/pets`)
const get = await capture(`${address}/pets/555555`)
petstore.kill()

Bun.serve({
  hostname: '127.0.0.1',
  port,
  development: false,
  routes: {
    '/v1/pets': () => new Response(list.body, list.init),
    '/v1/pets/*': () => new Response(get.body, get.init),
  },
})
