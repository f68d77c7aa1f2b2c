import { int64 } from '../field.ts'
import { cursorFor, pageLimit } from '../page.ts'
import { bodyBytesMax } from './body.ts'
import {
  commonHeaders,
  deprecationHeaders,
  failures,
  headerRef,
  headers,
  json,
  schemaRef,
  schemas,
} from './components.ts'
import { idempotencyKey } from './idempotency-key.ts'
import { versionPrefix } from './links.ts'
import type { ProblemCode } from './problem.ts'

export interface Deployment {
  readonly publicUrl?: string | undefined
  readonly stagingUrl?: string | undefined
}

const interfaceVersion = '1.0.0'
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
    // An instance whose public address is the staging one is the staging deployment.
    ...(publicUrl === undefined || publicUrl === stagingUrl
      ? []
      : [{ url: publicUrl, description: 'Production' }]),
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

const everywhere: readonly ProblemCode[] = [
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
  description:
    '`handling=strict` (RFC 7240): unknown parameters and properties are refused instead of ignored.',
  schema: { type: 'string' },
}

const idempotencyKeyParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    "The client's own name for this creation, kept for 24 hours: sent again with the same animal, it gives the first answer again and adds nothing.",
  schema: idempotencyKey.schema,
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
      'idempotency_key_reused',
      'ids_exhausted',
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
