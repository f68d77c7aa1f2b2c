import { openApiDocument } from '../http/openapi.ts'
import { command, setting } from './command.ts'
import { baseUrl } from './settings.ts'

export const openApiCommand = command({
  name: 'openapi',
  summary: 'Print the OpenAPI document, for client generators; needs no server',
  options: {
    server: setting('server', 'PETSTORE_PUBLIC_URL', 'http://127.0.0.1:8080/v1', {
      help: 'Base URL of the service that clients will use; /v1 is added if it is missing',
      ...baseUrl,
    }),
  },
  examples: ['petstore openapi > openapi.json', 'petstore openapi --server https://pets.example.com/v1'],
  async run({ server }, io) {
    const document = openApiDocument([{ url: server, description: 'The pet store' }])
    await io.out(`${JSON.stringify(document, null, 2)}\n`)
  },
})
