import { Ajv2020 } from 'ajv/dist/2020.js'
import { openApiDocument } from '../../src/http/openapi.ts'
import {
  type ErrorCode,
  errorCodes,
  errorHeaderIds,
  headers as knownHeaders,
  operationHeaderIds,
  versionPrefix,
} from '../../src/http/operations.ts'

interface Described {
  readonly 'x-error-codes'?: Readonly<Record<string, object>>
  readonly headers: Readonly<Record<string, unknown>>
  /** Absent if the response has no body. */
  readonly content?: { readonly 'application/json': { readonly schema: { readonly $ref: string } } }
}

interface DescribedOperation {
  readonly operationId: string
  readonly responses: Readonly<Record<string, Described>>
}

const document = openApiDocument([])
const { schemas } = document.components
const shared: Readonly<Record<string, unknown>> = document.components.responses
const paths: Readonly<Record<string, Record<string, DescribedOperation>>> = JSON.parse(
  JSON.stringify(document.paths),
  (_, part) => (part.$ref?.startsWith('#/components/responses/') ? shared[part.$ref.split('/').at(-1)] : part),
)

/** Each operation with each code that the document lists for it. */
export const describedCodes = Object.values(paths)
  .flatMap(methods => Object.values(methods))
  .flatMap(({ operationId, responses: { default: _, ...responses } }) =>
    Object.values(responses)
      .flatMap(listCodes)
      .map(code => [operationId, code] as const),
  )

// The document lets clients accept additions. Our own responses have none.
const closed = (schema: object) => ({ ...schema, additionalProperties: false })
const closedSchemas = { ...schemas, Pet: closed(schemas.Pet), Error: closed(schemas.Error) }
const ajv = new Ajv2020({ strict: true, allErrors: true, formats: { int64: true } })
ajv.addVocabulary(['components', 'x-extensible-enum'])
ajv.addSchema({ $id: 'openapi', components: { ...document.components, schemas: closedSchemas } })

const sentAlways = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

/** Headers that a response has only sometimes. */
const sentSometimes =
  /^(accept|accept-encoding|accept-patch|idempotency-replayed|link|preference-applied|ratelimit|ratelimit-policy|retry-after|x-next-cursor)$/

/** Headers for the connection, caches and browsers: no operation describes them. */
const undescribedHeader =
  /^(access-control-.*|cache-control|connection|content-.*|date|transfer-encoding|vary|x-content-type-options)$/

function listCodes(response: Described): readonly ErrorCode[] {
  return Object.keys(response['x-error-codes'] ?? {}) as ErrorCode[]
}

/**
 * Throws unless a response under /v1 is as our OpenAPI document describes it for that operation: status, code, headers
 * and body. The document's `default` is no excuse.
 */
export function expectDescribed(method: string, path: string, response: Response, text: string): void {
  const { status, headers, ok } = response
  const what = `${method} ${path} → ${status}`
  for (const [name, value] of Object.entries(sentAlways)) {
    if (headers.get(name) !== value) throw new Error(`${what}: the header ${name} is ${headers.get(name)}`)
  }
  const operation = findOperation(method, path)
  const described = operation?.responses[status]
  if (operation && !described) throw new Error(`${what} is not described`)
  if (described) expectHeaders(Object.keys(described.headers), response, what)
  const type = ok && described && !described.content ? null : 'application/json'
  if (headers.get('content-type') !== type) throw new Error(`${what}: the type is ${headers.get('content-type')}`)
  if (type === null && text !== '') throw new Error(`${what} has a body: ${text}`)
  if (method === 'HEAD' || type === null) return
  const body = JSON.parse(text)
  if (described?.content) expectSchema(described.content['application/json'].schema.$ref, body, what)
  if (ok) return
  expectSchema('#/components/schemas/Error', body, what)
  if (body.status !== status) throw new Error(`${what}: the Error's status is ${body.status}`)
  const code = body.code as ErrorCode
  if (!Object.hasOwn(errorCodes, code)) throw new Error(`${what}: the code ${code} is not published`)
  const listed = errorHeaderIds[code] ?? operationHeaderIds
  if (!described) expectHeaders(['x-request-id', ...listed.map(findHeaderName)], response, what)
  else if (!listCodes(described).includes(code)) throw new Error(`${what} does not list the code ${code}`)
}

const findHeaderName = (id: keyof typeof knownHeaders) => knownHeaders[id].name ?? id

/** Undefined if there is none: the path or the method is not supported. */
function findOperation(method: string, path: string): DescribedOperation | undefined {
  const isAt = (template: string) => new RegExp(`^${versionPrefix}${template.replace('{petId}', '[^/]+')}$`).test(path)
  const [, methods] = Object.entries(paths).find(([template]) => isAt(template)) ?? []
  return methods?.[method === 'HEAD' ? 'get' : method.toLowerCase()]
}

function expectHeaders(described: readonly string[], { headers }: Response, what: string): void {
  const names = described.map(name => name.toLowerCase())
  const undescribed = [...headers.keys()].filter(name => !undescribedHeader.test(name) && !names.includes(name))
  if (undescribed.length > 0) throw new Error(`${what}: headers that are not described: ${undescribed.join(', ')}`)
  const missing = names.filter(name => !sentSometimes.test(name) && !headers.has(name))
  if (missing.length > 0) throw new Error(`${what}: headers that are missing: ${missing.join(', ')}`)
}

function expectSchema(ref: string, value: unknown, what: string): void {
  const validate = ajv.getSchema(`openapi${ref}`)
  if (!validate?.(value)) throw new Error(`${what} is not as described: ${ajv.errorsText(validate?.errors)}`)
}
