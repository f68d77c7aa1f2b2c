import { int64, type JsonSchema } from '../field.ts'
import { cursorFor, pageLimit } from '../page.ts'
import { newPetFields, newPetRequired, petStatus } from '../pet.ts'
import { bodyBytesMax } from './body.ts'
import { idempotencyKey } from './request.ts'
import { type ErrorCode, errorCodes, versionPrefix } from './response.ts'

/** The base addresses for the document's `servers`. */
export interface PublishedServers {
  readonly publicUrl?: string | undefined
  readonly stagingUrl?: string | undefined
}

const interfaceVersion = '1.0.0'
const rex = { id: 1, name: 'Rex', categoryId: 7, status: 'available' }

/** The OpenAPI 3.1 document. Its schemas come from the fields that read requests. */
export function openApiDocument(servers: PublishedServers) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Pet store',
      version: interfaceVersion,
      summary: 'A catalogue of the animals that a store offers.',
      description:
        'List animals, add one, fetch one by its identifier (deprecated). Every operation needs an API key as bearer token. Integers use the whole 64-bit range: use a parser that does not round them.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: serversOf(servers),
    security: [{ bearerAuth: [] }],
    tags: [{ name: 'pets', description: 'The animals of the catalogue.' }],
    paths: {
      '/pets': { get: listPets, post: createPet },
      '/pets/{petId}': { get: getPet },
    },
    components: { securitySchemes, schemas, headers },
  }
}

function serversOf({ publicUrl, stagingUrl }: PublishedServers) {
  return [
    { url: versionPrefix, description: 'This instance' },
    // If both are the same, this instance is the staging deployment.
    ...(publicUrl === undefined || publicUrl === stagingUrl ? [] : [{ url: publicUrl, description: 'Production' }]),
    ...(stagingUrl === undefined ? [] : [{ url: stagingUrl, description: 'Staging' }]),
  ]
}

type Ref = { readonly $ref: string }
const schemaRef = (name: string): Ref => ({ $ref: `#/components/schemas/${name}` })
const headerRef = (name: string): Ref => ({ $ref: `#/components/headers/${name}` })
const jsonContent = (schema: JsonSchema, example?: unknown) => ({
  'application/json': example === undefined ? { schema } : { schema, example },
})

const newPetProperties = Object.fromEntries(
  Object.entries(newPetFields).map(([name, field]) => [
    name,
    name === 'status' ? schemaRef('PetStatus') : field.schema,
  ]),
)

const schemas = {
  PetStatus: { ...petStatus.schema, description: 'Availability of the animal.' },
  NewPet: {
    type: 'object',
    description: 'An animal to add. The service assigns its identifier and ignores other properties.',
    required: newPetRequired,
    properties: newPetProperties,
  },
  Pet: {
    type: 'object',
    description: 'An animal of the catalogue. It has no status if none was sent.',
    required: ['id', ...newPetRequired],
    properties: { id: { ...int64.schema, description: 'Assigned on creation.' }, ...newPetProperties },
    additionalProperties: false,
  },
  Pets: { type: 'array', items: schemaRef('Pet'), maxItems: pageLimit.schema['maximum'] },
  Error: {
    type: 'object',
    description: 'Why a request failed.',
    required: ['code', 'message', 'status'],
    properties: {
      code: {
        type: 'string',
        'x-extensible-enum': Object.keys(errorCodes),
        description: 'For programs. The set may grow: handle an unknown code by its status.',
      },
      message: { type: 'string', description: 'For people. Names every problem of the request.' },
      status: { type: 'integer', description: 'The HTTP status of the response.' },
    },
    additionalProperties: false,
  },
}

const header = (description: string, schema: JsonSchema = { type: 'string' }) => ({ description, schema })

const headers = {
  'X-Request-Id': {
    ...header('The id that the client sent if it is safe, otherwise a new one. The log has it too.'),
    required: true,
  },
  'Cache-Control': { ...header('Responses are not cached.', { const: 'no-store' }), required: true },
  'X-Content-Type-Options': {
    ...header('Browsers do not guess the type.', { const: 'nosniff' }),
    required: true,
  },
  'WWW-Authenticate': { ...header('The bearer challenge (RFC 6750).'), required: true },
  Allow: { ...header('The methods that the path supports.'), required: true },
  'Retry-After': header('Seconds to wait before a retry. Absent if a retry does not help.', {
    type: 'string',
    pattern: '^[0-9]+$',
  }),
  'Preference-Applied': header('Present if the request asked for `Prefer: handling=strict`.'),
  'Idempotency-Replayed': header('`true` if an earlier request with the same Idempotency-Key created the animal.', {
    const: 'true',
  }),
  RateLimit: header('The requests left in the window, if a rate limit is configured.'),
  'RateLimit-Policy': header('The rate limit, if one is configured.'),
  NextPage: header('The next page as `rel="next"` (RFC 8288), if there is one.'),
  Location: { ...header('The address of the new animal.'), required: true },
  Deprecation: { ...header('When the operation was deprecated (RFC 9745).'), required: true },
  Sunset: { ...header('When the operation will be removed (RFC 8594).'), required: true },
  DeprecationLinks: {
    ...header('`rel="deprecation"`: the documentation. `rel="successor-version"`: the replacement.'),
    required: true,
  },
}

type Headers = Record<string, Ref>

const commonHeaders: Headers = {
  'X-Request-Id': headerRef('X-Request-Id'),
  'Cache-Control': headerRef('Cache-Control'),
  'X-Content-Type-Options': headerRef('X-Content-Type-Options'),
  'Preference-Applied': headerRef('Preference-Applied'),
  RateLimit: headerRef('RateLimit'),
  'RateLimit-Policy': headerRef('RateLimit-Policy'),
}

const deprecationHeaders: Headers = {
  Deprecation: headerRef('Deprecation'),
  Sunset: headerRef('Sunset'),
  Link: headerRef('DeprecationLinks'),
}

/** Headers of errors with this status, besides the common ones. */
const errorHeaders: Record<number, Headers> = {
  401: { 'WWW-Authenticate': headerRef('WWW-Authenticate') },
  403: { 'WWW-Authenticate': headerRef('WWW-Authenticate') },
  405: { Allow: headerRef('Allow') },
  429: { 'Retry-After': headerRef('Retry-After') },
  503: { 'Retry-After': headerRef('Retry-After') },
}

/** Error responses by status, each with its codes and what a client does about them. */
function errorResponses(codes: readonly ErrorCode[], extra: Partial<Record<number, Headers>> = {}) {
  const statuses = [...new Set(codes.map(code => errorCodes[code].status))].sort((a, b) => a - b)
  return Object.fromEntries(
    statuses.map(status => {
      const own = codes.filter(code => errorCodes[code].status === status)
      const example = { code: own[0], message: own[0] && errorCodes[own[0]].meaning, status }
      return [
        String(status),
        {
          description: own.map(code => `\`${code}\`: ${errorCodes[code].meaning}`).join(' '),
          headers: { ...commonHeaders, ...errorHeaders[status], ...extra[status] },
          content: jsonContent(schemaRef('Error'), example),
        },
      ]
    }),
  )
}

const securitySchemes = {
  bearerAuth: {
    type: 'http',
    scheme: 'bearer',
    description: 'The API key: `Authorization: Bearer <API_KEY>`.',
  },
}

const commonErrors: readonly ErrorCode[] = [
  'missing_api_key',
  'invalid_api_key',
  'insufficient_permission',
  'method_not_allowed',
  'rate_limited',
  'internal_error',
  'store_unavailable',
]

const preferParameter = {
  name: 'Prefer',
  in: 'header',
  description: '`handling=strict` (RFC 7240): refuse unknown parameters and properties instead of ignoring them.',
  schema: { type: 'string' },
}

const idempotencyKeyParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    "The client's own name for this creation, remembered for 24 hours. The same key with the same animal returns the first response and adds nothing.",
  schema: idempotencyKey.schema,
}

const listPets = {
  operationId: 'listPets',
  tags: ['pets'],
  summary: 'List animals',
  description: 'Ascending by identifier. The Link header has the next page, if there is one.',
  parameters: [
    {
      name: 'limit',
      in: 'query',
      description: 'The maximum number of animals to return.',
      schema: pageLimit.schema,
    },
    {
      name: 'status',
      in: 'query',
      description: 'Only animals with this status.',
      schema: schemaRef('PetStatus'),
    },
    {
      name: 'cursor',
      in: 'query',
      description: 'Where the page starts, from the Link header of the previous page.',
      schema: cursorFor(undefined).schema,
    },
    preferParameter,
  ],
  responses: {
    '200': {
      description: 'A page of animals.',
      headers: { ...commonHeaders, Link: headerRef('NextPage') },
      content: jsonContent(schemaRef('Pets'), [rex]),
    },
    ...errorResponses([...commonErrors, 'invalid_request', 'invalid_cursor']),
  },
}

const createPet = {
  operationId: 'createPet',
  tags: ['pets'],
  summary: 'Add an animal',
  description: `The body is UTF-8 and at most ${bodyBytesMax} bytes. A 201 response means the animal is on disk.`,
  parameters: [preferParameter, idempotencyKeyParameter],
  requestBody: {
    required: true,
    content: jsonContent(schemaRef('NewPet'), { name: 'Rex', categoryId: 7, status: 'available' }),
  },
  responses: {
    '201': {
      description: 'The animal, with its identifier.',
      headers: {
        ...commonHeaders,
        Location: headerRef('Location'),
        'Idempotency-Replayed': headerRef('Idempotency-Replayed'),
      },
      content: jsonContent(schemaRef('Pet'), rex),
    },
    ...errorResponses([
      ...commonErrors,
      'read_only_key',
      'missing_body',
      'invalid_json',
      'invalid_request',
      'request_timeout',
      'body_too_large',
      'unsupported_media_type',
      'unsupported_content_encoding',
      'idempotency_key_reused',
      'ids_exhausted',
    ]),
  },
}

const getPet = {
  operationId: 'getPet',
  tags: ['pets'],
  summary: 'Fetch an animal',
  description: 'Deprecated, to be removed on 5 December 2030. Use `GET /pets` with a status filter instead.',
  deprecated: true,
  parameters: [
    {
      name: 'petId',
      in: 'path',
      required: true,
      description: 'The identifier of the animal.',
      schema: int64.schema,
      example: 1,
    },
    preferParameter,
  ],
  responses: {
    '200': {
      description: 'The animal.',
      headers: { ...commonHeaders, ...deprecationHeaders },
      content: jsonContent(schemaRef('Pet'), rex),
    },
    ...errorResponses([...commonErrors, 'invalid_request', 'pet_not_found'], {
      400: deprecationHeaders,
      404: deprecationHeaders,
    }),
  },
}
