import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { openApiDocument, type PublishedServers } from '../../src/http/openapi.ts'

/** Holds answers against our own OpenAPI document: status, type, headers, body. */
export interface Conformance {
  /** Throws, saying how, where an answer is not what the document says. */
  check(method: string, path: string, response: Response, text: string): void
}

interface DescribedHeader {
  readonly required?: boolean
  readonly schema: object
}

interface DescribedResponse {
  readonly headers: Record<string, { $ref: string }>
  readonly content: { 'application/json': { schema: object } }
}

export function createConformance(deployment: PublishedServers): Conformance {
  const document = openApiDocument(deployment)
  const ajv = new Ajv2020({ strict: true, allErrors: true, formats: { int64: true } })
  ajv.addSchema({ $id: 'openapi', components: document.components }, 'openapi')
  ajv.addVocabulary(['components', 'x-extensible-enum'])
  const codes = document.components.schemas.Error.properties.code['x-extensible-enum']
  const compiled = new Map<string, ValidateFunction>()

  function validate(schema: object, value: unknown, what: string): void {
    const source = JSON.stringify(schema).replaceAll('"#/components', '"openapi#/components')
    const check = compiled.get(source) ?? ajv.compile(JSON.parse(source))
    compiled.set(source, check)
    if (!check(value)) throw new Error(`${what} is not as described: ${ajv.errorsText(check.errors)}`)
  }

  function headerOf(ref: string): DescribedHeader {
    const name = ref.slice('#/components/headers/'.length) as keyof typeof document.components.headers
    return document.components.headers[name]
  }

  function checkHeaders(described: DescribedResponse, response: Response, what: string): void {
    for (const [name, { $ref }] of Object.entries(described.headers)) {
      const { required, schema } = headerOf($ref)
      const value = response.headers.get(name)
      if (value !== null) validate(schema, value, `${what}: header ${name}`)
      else if (required) throw new Error(`${what}: header ${name} is missing`)
    }
  }

  function describedResponse(method: string, path: string, status: number): DescribedResponse | undefined {
    // As the client sent it: dots are resolved.
    const bare = new URL(path, 'http://localhost').pathname
    const template = /^\/v1\/pets$/.test(bare) ? '/pets' : '/pets/{petId}'
    if (!/^\/v1\/pets(?:\/[^/]+)?$/.test(bare)) return undefined
    const operations = document.paths[template] as Record<
      string,
      { responses: Record<string, DescribedResponse> }
    >
    // A method that the path does not take has no operation of its own to be described in.
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase()
    const operation = operations[verb] ?? operations['get']
    const described = operation?.responses[String(status)]
    if (!described) throw new Error(`${method} ${path}: status ${status} is not described`)
    return described
  }

  return {
    check(method, path, response, text) {
      const what = `${method} ${path} → ${response.status}`
      const type = response.headers.get('content-type')
      if (type !== 'application/json') throw new Error(`${what}: the content type is ${type}`)
      if (!response.headers.get('x-request-id')) throw new Error(`${what}: no X-Request-Id`)
      const described = describedResponse(method, path, response.status)
      if (described) checkHeaders(described, response, what)
      if (method === 'HEAD') return
      const body = JSON.parse(text)
      if (response.status >= 400) {
        validate({ $ref: '#/components/schemas/Error' }, body, what)
        if (!codes.includes(body.code)) throw new Error(`${what}: the code ${body.code} is not published`)
        if (body.status !== response.status) throw new Error(`${what}: the Error's status is ${body.status}`)
      }
      if (described) validate(described.content['application/json'].schema, body, what)
    },
  }
}
