import type { JsonSchema } from '../field.ts'
import { int64 } from '../int64.ts'
import { cursorFor, pageLimit } from '../page.ts'
import { newPetFields, newPetRequired, petStatus } from '../pet.ts'
import { bodyBytesMax } from './body.ts'
import { idempotencyKey } from './idempotency-key.ts'
import { versionPrefix } from './links.ts'
import { type ProblemCode, problems } from './problem.ts'

export interface Deployment {
  readonly publicUrl?: string | undefined
  readonly stagingUrl?: string | undefined
}

const interfaceVersion = '1.0.0'
type Ref = { readonly $ref: string }
const schemaRef = (name: string): Ref => ({ $ref: `#/components/schemas/${name}` })
const headerRef = (name: string): Ref => ({ $ref: `#/components/headers/${name}` })
const json = (schema: JsonSchema, example?: unknown) => ({
  'application/json': example === undefined ? { schema } : { schema, example },
})

const rex = { id: 1, name: 'Rex', categoryId: 7, status: 'available' }

/** The OpenAPI 3.1 document. Its schemas are the fields that requests are read with, its codes the ones we answer. */
export function describe(deployment: Deployment) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Pet store',
      version: interfaceVersion,
      summary: 'A catalogue of the animals that a store offers.',
      description:
        'List animals, add one, fetch one by its identifier (deprecated). Every operation needs an API key as bearer token. Integers are exact over the whole 64-bit range: read them with a parser that keeps them so.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: serversOf(deployment),
    security: [{ bearerAuth: [] }],
    tags: [{ name: 'pets', description: 'The animals of the catalogue.' }],
    paths: {
      '/pets': { get: listPets, post: createPet },
      '/pets/{petId}': { get: getPet },
    },
    components: { securitySchemes, schemas, headers },
  }
}

function serversOf({ publicUrl, stagingUrl }: Deployment) {
  return [
    { url: versionPrefix, description: 'This instance' },
    ...(publicUrl === undefined ? [] : [{ url: publicUrl, description: 'Production' }]),
    ...(stagingUrl === undefined ? [] : [{ url: stagingUrl, description: 'Staging' }]),
  ]
}

const securitySchemes = {
  bearerAuth: {
    type: 'http',
    scheme: 'bearer',
    description: 'The API key: `Authorization: Bearer <API_KEY>`.',
  },
}

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
    description: 'An animal to add. Its identifier is assigned by the service; other properties are ignored.',
    required: newPetRequired,
    properties: newPetProperties,
  },
  Pet: {
    type: 'object',
    description: 'An animal of the catalogue. It has no status where none was given.',
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
      code: { type: 'string', enum: Object.keys(problems), description: 'For programs: a closed set.' },
      message: { type: 'string', description: 'For people: every problem of the request.' },
      status: { type: 'integer', description: 'The HTTP status of the response.' },
    },
    additionalProperties: false,
  },
}

const header = (description: string, schema: JsonSchema = { type: 'string' }) => ({ description, schema })

const headers = {
  'X-Request-Id': {
    ...header("The client's own id where it sent a sane one, else ours; the log has it too."),
    required: true,
  },
  'Cache-Control': { ...header('Nothing is to be stored.', { const: 'no-store' }), required: true },
  'X-Content-Type-Options': { ...header('The type is as it says.', { const: 'nosniff' }), required: true },
  'WWW-Authenticate': { ...header('The bearer challenge (RFC 6750).'), required: true },
  Allow: { ...header('The methods that the path takes.'), required: true },
  'Retry-After': { ...header('Seconds to wait.', { type: 'string', pattern: '^[0-9]+$' }), required: true },
  'Preference-Applied': header('Present where `Prefer: handling=strict` was honoured.'),
  'Idempotency-Replayed': header(
    '`true` where the answer is that of an earlier request with the same Idempotency-Key.',
    {
      const: 'true',
    },
  ),
  RateLimit: header('What is left of the rate, where one is configured.'),
  'RateLimit-Policy': header('The rate, where one is configured.'),
  NextPage: header('While more animals follow: the next page, as `rel="next"` (RFC 8288).'),
  Location: { ...header('The address of the new animal.'), required: true },
  Deprecation: { ...header('Since when the operation is deprecated (RFC 9745).'), required: true },
  Sunset: { ...header('When the operation is removed (RFC 8594).'), required: true },
  DeprecationLinks: {
    ...header('`rel="deprecation"`: its documentation. `rel="successor-version"`: its replacement.'),
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

/** The headers that a failure of this status carries besides the common ones. */
const failureHeaders: Record<number, Headers> = {
  401: { 'WWW-Authenticate': headerRef('WWW-Authenticate') },
  403: { 'WWW-Authenticate': headerRef('WWW-Authenticate') },
  405: { Allow: headerRef('Allow') },
  409: { 'Retry-After': headerRef('Retry-After') },
  429: { 'Retry-After': headerRef('Retry-After') },
  503: { 'Retry-After': headerRef('Retry-After') },
}

/** The failures of an operation, by status: each with its codes and what a client does about them. */
function failures(codes: readonly ProblemCode[], extra: Partial<Record<number, Headers>> = {}) {
  const statuses = [...new Set(codes.map(code => problems[code].status))].sort((a, b) => a - b)
  return Object.fromEntries(
    statuses.map(status => {
      const own = codes.filter(code => problems[code].status === status)
      const example = { code: own[0], message: own[0] && problems[own[0]].meaning, status }
      return [
        String(status),
        {
          description: own.map(code => `\`${code}\`: ${problems[code].meaning}`).join(' '),
          headers: { ...commonHeaders, ...failureHeaders[status], ...extra[status] },
          content: json(schemaRef('Error'), example),
        },
      ]
    }),
  )
}

const everywhere: readonly ProblemCode[] = [
  'missing_api_key',
  'invalid_api_key',
  'method_not_allowed',
  'rate_limited',
  'internal_error',
  'store_unavailable',
]

const preferParameter = {
  name: 'Prefer',
  in: 'header',
  description:
    '`handling=strict` (RFC 7240): unknown parameters and properties are refused instead of ignored.',
  schema: { type: 'string' },
  example: 'handling=strict',
}

const idempotencyKeyParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    "The client's own name for this creation, kept for 24 hours: sent again with the same animal, it gives the first answer again and adds nothing.",
  schema: idempotencyKey.schema,
  example: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
}

const listPets = {
  operationId: 'listPets',
  tags: ['pets'],
  summary: 'List animals',
  description: 'Ascending by identifier. The Link header leads to the next page while there is one.',
  parameters: [
    {
      name: 'limit',
      in: 'query',
      description: 'How many animals to return at most.',
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
      description: 'Where to go on: taken from the Link header, never made up.',
      schema: cursorFor(undefined).schema,
    },
    preferParameter,
  ],
  responses: {
    '200': {
      description: 'A page of animals.',
      headers: { ...commonHeaders, Link: headerRef('NextPage') },
      content: json(schemaRef('Pets'), [rex]),
    },
    ...failures([...everywhere, 'invalid_request', 'invalid_cursor']),
  },
}

const createPet = {
  operationId: 'createPet',
  tags: ['pets'],
  summary: 'Add an animal',
  description: `The body is UTF-8 and at most ${bodyBytesMax} bytes. When this is answered, the animal survives a crash.`,
  parameters: [preferParameter, idempotencyKeyParameter],
  requestBody: {
    required: true,
    content: json(schemaRef('NewPet'), { name: 'Rex', categoryId: 7, status: 'available' }),
  },
  responses: {
    '201': {
      description: 'The animal, with its identifier.',
      headers: {
        ...commonHeaders,
        Location: headerRef('Location'),
        'Idempotency-Replayed': headerRef('Idempotency-Replayed'),
      },
      content: json(schemaRef('Pet'), rex),
    },
    ...failures([
      ...everywhere,
      'read_only_key',
      'missing_body',
      'invalid_json',
      'invalid_request',
      'request_timeout',
      'body_too_large',
      'unsupported_media_type',
      'unsupported_content_encoding',
      'idempotency_key_in_use',
      'idempotency_key_reused',
    ]),
  },
}

const getPet = {
  operationId: 'getPet',
  tags: ['pets'],
  summary: 'Fetch an animal',
  description:
    'Deprecated, and removed on 5 December 2030. Use `GET /pets` with a status filter instead: the Link header names it.',
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
      content: json(schemaRef('Pet'), rex),
    },
    ...failures([...everywhere, 'invalid_request', 'pet_not_found'], {
      400: deprecationHeaders,
      404: deprecationHeaders,
    }),
  },
}
