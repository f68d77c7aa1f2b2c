import { Ajv2020 } from 'ajv/dist/2020.js'
import { openApiDocument } from '../../src/http/openapi.ts'

interface Described {
  readonly description: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly content: { readonly 'application/json': { readonly schema: { readonly $ref: string } } }
}

type DescribedResponses = Readonly<Record<string, Described | { readonly $ref: string } | undefined>>

const document = openApiDocument([])
const { schemas, responses } = document.components
const sharedResponses: Readonly<Record<string, Described | undefined>> = responses
const codes = schemas.Error.properties.code['x-extensible-enum']

// The document lets clients accept additions. Our own responses have none.
const closed = (schema: object) => ({ ...schema, additionalProperties: false })
const closedSchemas = { ...schemas, Pet: closed(schemas.Pet), Error: closed(schemas.Error) }
const ajv = new Ajv2020({ strict: true, allErrors: true, formats: { int64: true } })
ajv.addVocabulary(['components', 'x-extensible-enum'])
ajv.addSchema({ $id: 'openapi', components: { ...document.components, schemas: closedSchemas } })

const sentAlways = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}

/** Headers that a response has only sometimes. */
const sentSometimes =
  /^(idempotency-replayed|link|preference-applied|ratelimit|ratelimit-policy|retry-after|x-next-cursor)$/

/** Headers for the connection, caches and browsers: no operation describes them. */
const undescribedHeader =
  /^(access-control-.*|cache-control|connection|content-.*|date|transfer-encoding|vary|x-content-type-options)$/

/** They would double the size of generated clients. */
const undescribedInErrors = /^(preference-applied|ratelimit|ratelimit-policy)$/

/** Throws unless a response under /v1 is as our OpenAPI document describes it: status, type, headers and body. */
export function expectDescribed(method: string, path: string, response: Response, text: string): void {
  const { status, headers, ok } = response
  const what = `${method} ${path} → ${status}`
  for (const [name, value] of Object.entries(sentAlways)) {
    if (headers.get(name) !== value) throw new Error(`${what}: the header ${name} is ${headers.get(name)}`)
  }
  const described = describedResponse(method, path, status)
  if (described && !described.isDefault) expectHeaders(described.response, response, what)
  if (method === 'HEAD') return
  const body = JSON.parse(text)
  if (!ok) {
    expectSchema('#/components/schemas/Error', body, what)
    if (!codes.includes(body.code)) throw new Error(`${what}: the code ${body.code} is not published`)
    if (body.status !== status) throw new Error(`${what}: the Error's status is ${body.status}`)
  }
  if (!described) return
  expectSchema(described.response.content['application/json'].schema.$ref, body, what)
  if (!ok && !described.response.description.includes(`\`${body.code}\``))
    throw new Error(`${what}: the description does not list the code ${body.code}`)
}

/** Undefined for a path without operations. The default is for several statuses, which have different headers. */
function describedResponse(method: string, path: string, status: number) {
  if (!/^\/v1\/pets(?:\/[^/]+)?$/.test(path)) return undefined
  const operations: Readonly<Record<string, { readonly responses: DescribedResponses }>> =
    document.paths[path === '/v1/pets' ? '/pets' : '/pets/{petId}']
  // A method that the path does not support has no operation: its 405 is the default of GET.
  const operation = operations[method === 'HEAD' ? 'get' : method.toLowerCase()] ?? operations['get']
  const own = operation?.responses[String(status)]
  const found = own ?? (status >= 400 ? operation?.responses['default'] : undefined)
  const response = found && '$ref' in found ? sharedResponses[found.$ref.split('/').at(-1) ?? ''] : found
  if (!response) throw new Error(`${method} ${path}: status ${status} is not described`)
  return { isDefault: own === undefined, response }
}

function expectHeaders(described: Described, { ok, headers }: Response, what: string): void {
  const names = Object.keys(described.headers).map(name => name.toLowerCase())
  const sent = [...headers.keys()].filter(name => !undescribedHeader.test(name))
  const undescribed = sent.filter(name => !names.includes(name) && (ok || !undescribedInErrors.test(name)))
  if (undescribed.length > 0) throw new Error(`${what}: headers that are not described: ${undescribed.join(', ')}`)
  const missing = names.filter(name => !sentSometimes.test(name) && !headers.has(name))
  if (missing.length > 0) throw new Error(`${what}: headers that are missing: ${missing.join(', ')}`)
}

function expectSchema(ref: string, value: unknown, what: string): void {
  const validate = ajv.getSchema(`openapi${ref}`)
  if (!validate?.(value)) throw new Error(`${what} is not as described: ${ajv.errorsText(validate?.errors)}`)
}
