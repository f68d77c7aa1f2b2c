// The upper limit of node:http: it sends the petstore's bytes and headers and reads nothing of the request but the path.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const [port, file] = process.argv.slice(2)
const { list, get } = JSON.parse(readFileSync(file, 'utf8'))
const prepare = ({ headers, body }) => ({
  headers: { ...headers, 'Content-Length': Buffer.byteLength(body) },
  body: Buffer.from(body),
})
const [listResponse, getResponse] = [prepare(list), prepare(get)]

createServer((request, response) => {
  const { headers, body } = request.url === '/v1/pets' ? listResponse : getResponse
  response.writeHead(200, headers).end(body)
}).listen(Number(port), '127.0.0.1')
