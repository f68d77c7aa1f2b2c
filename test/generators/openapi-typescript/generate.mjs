import { writeFileSync } from 'node:fs'
import openapiTS, { astToString, STRING } from 'openapi-typescript'

// As a number, a 64-bit integer would be rounded.
const transform = schema => (schema.format === 'int64' ? STRING : undefined)
writeFileSync('petstore.ts', astToString(await openapiTS(new URL('openapi.json', import.meta.url), { transform })))
