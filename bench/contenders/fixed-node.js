// The ceiling of Node: node:http answers the bytes and headers that the petstore would, and looks at nothing else.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const [port, file] = process.argv.slice(2)
const { list, get } = JSON.parse(readFileSync(file, 'utf8'))
const prepare = ({ headers, body }) => ({
  headers: { ...headers, 'Content-Length': Buffer.byteLength(body) },
  body: Buffer.from(body),
})
const [listAnswer, getAnswer] = [prepare(list), prepare(get)]

createServer((request, response) => {
  const { headers, body } = request.url === '/v1/pets' ? listAnswer : getAnswer
  response.writeHead(200, headers).end(body)
}).listen(Number(port), '127.0.0.1')
