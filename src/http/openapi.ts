import { int64 } from '../field.ts'
import { cursorFor, limitDefault, pageLimit, writeCursor } from '../page.ts'
import { newPetRequired, petName, petStatus } from '../pet.ts'
import { bodyBytesMax } from './body.ts'
import { idempotencyKey } from './pets.ts'
import { type ErrorCode, errorCodes, versionPrefix } from './response.ts'

export interface OpenApiServer {
  readonly url: string
  readonly description: string
}

export interface PublishedUrls {
  readonly publicUrl?: string | undefined
  readonly stagingUrl?: string | undefined
}

/** Generators use the first server. The relative one works behind any proxy that keeps the path. */
export function publishedServers({ publicUrl, stagingUrl }: PublishedUrls): readonly OpenApiServer[] {
  const ownName = publicUrl === stagingUrl ? 'Staging' : 'Production'
  return [
    ...(publicUrl === undefined ? [] : [{ url: publicUrl, description: ownName }]),
    { url: versionPrefix, description: 'This instance' },
    ...(stagingUrl === undefined || stagingUrl === publicUrl ? [] : [{ url: stagingUrl, description: 'Staging' }]),
  ]
}

/**
 * The OpenAPI 3.1 document: strict about requests, whose schemas come from the fields that read them, and open about
 * responses, so that generated clients accept later additions.
 */
export function openApiDocument(servers: readonly OpenApiServer[]) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Pet store',
      version: '1.0.0',
      summary: 'A catalogue of the animals that a store offers.',
      description:
        'List animals, add one, fetch one by its identifier (deprecated). Every operation needs an API key as bearer token. Integers use the whole 64-bit range: use a parser that does not round them. Do not cache responses. Later versions may add properties and headers to responses: ignore those that you do not know.',
      contact: { name: 'The operator of this service' },
      license: { name: 'MIT License', identifier: 'MIT' },
    },
    servers,
    security: [{ bearerAuth: [] }],
    tags: [{ name: 'pets', description: 'The animals of the catalogue.' }],
    paths: {
      '/pets': { get: listPets, post: createPet },
      '/pets/{petId}': { get: getPet },
    },
    components: { securitySchemes, schemas, parameters, headers, responses },
  }
}

type Ref = { readonly $ref: string }
const refTo = (kind: 'schemas' | 'parameters' | 'headers' | 'responses', name: string): Ref => ({
  $ref: `#/components/${kind}/${name}`,
})
const json = (schema: string, example: unknown) => ({
  'application/json': { schema: refTo('schemas', schema), example },
})

const securitySchemes = {
  bearerAuth: {
    type: 'http',
    scheme: 'bearer',
    description: 'The API key: `Authorization: Bearer <API_KEY>`.',
  },
}

/** Beyond 2^53, and even: tools that read numbers as doubles still show it exactly. */
const largeId = 9007199254740994
const rex = { name: 'Rex', categoryId: largeId, status: 'available' }
const storedRex = { id: 1, ...rex }
const status = refTo('schemas', 'PetStatus')
const categoryId = {
  ...int64.schema,
  description: 'The category of the animal. It does not have to exist.',
  examples: [largeId],
}

const schemas = {
  PetStatus: { ...petStatus.schema, description: 'Availability of the animal.', examples: ['available'] },
  NewPet: {
    type: 'object',
    description: 'An animal to add. The service assigns its identifier and ignores other properties.',
    required: newPetRequired,
    properties: {
      name: {
        ...petName.schema,
        description:
          'The name, stored exactly as sent: 1 to 1,000 Unicode code points, not all white space, no U+0000, no unpaired surrogate.',
        examples: ['Rex'],
      },
      categoryId,
      status,
    },
  },
  Pet: {
    type: 'object',
    description: 'An animal of the catalogue. It has no status if none was sent.',
    required: ['id', ...newPetRequired],
    properties: {
      id: { ...int64.schema, description: 'The identifier, assigned on creation.', examples: [1] },
      name: { type: 'string', description: 'The name, exactly as sent.', examples: ['Rex'] },
      categoryId,
      status,
    },
  },
  Pets: {
    type: 'array',
    description: 'A page of animals, in ascending order of their identifiers.',
    items: refTo('schemas', 'Pet'),
    examples: [[storedRex]],
  },
  Error: {
    type: 'object',
    description: 'Why a request failed.',
    required: ['code', 'message', 'status'],
    properties: {
      code: {
        type: 'string',
        'x-extensible-enum': Object.keys(errorCodes),
        description: `For programs. The set may grow: handle an unknown code by its status. Known codes: ${Object.keys(errorCodes).join(', ')}.`,
        examples: ['invalid_request'],
      },
      message: {
        type: 'string',
        description: 'For people. Names every problem of the request.',
        examples: ['name is empty: expected 1 to 1,000 characters'],
      },
      status: { type: 'integer', description: 'The HTTP status of the response.', examples: [400] },
    },
  },
}

/** Valid with `status=available`, the example of that parameter. */
const exampleCursor = writeCursor(20n, 'available')

/** The reference page fills in the example of petId. Other examples are in the schemas, so that tools do not send them. */
const parameters = {
  limit: {
    name: 'limit',
    in: 'query',
    description: 'The maximum number of animals to return.',
    schema: { ...pageLimit.schema, examples: [limitDefault] },
  },
  status: {
    name: 'status',
    in: 'query',
    description: 'Only animals with this status.',
    schema: status,
  },
  cursor: {
    name: 'cursor',
    in: 'query',
    description:
      'Where the page starts: X-Next-Cursor of the previous page, with the same status. Its form may change.',
    schema: { ...cursorFor(undefined).schema, examples: [exampleCursor] },
  },
  petId: {
    name: 'petId',
    in: 'path',
    required: true,
    description: 'The identifier of the animal.',
    schema: int64.schema,
    example: 1,
  },
  'Idempotency-Key': {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      "The client's own name for this creation, remembered for 24 hours: 1 to 255 visible ASCII characters, bare or in double quotes, counted as they are written. The same key with the same animal returns the first response and adds nothing.",
    schema: { ...idempotencyKey.schema, examples: ['6f1c0a6e-5d3b-4b67-9d53-0a6f2f0e8f11'] },
  },
  Prefer: {
    name: 'Prefer',
    in: 'header',
    description: '`handling=strict` (RFC 7240): refuse unknown parameters and properties instead of ignoring them.',
    schema: { type: 'string', examples: ['handling=strict'] },
  },
}

const parameterRefs = (...names: (keyof typeof parameters)[]) => names.map(name => refTo('parameters', name))

const header = (description: string, example: string) => ({ description, schema: { type: 'string' }, example })

/** Link is described twice: it means different things in different responses. */
const headers = {
  'X-Request-Id': header(
    'The id that the client sent if it is safe, otherwise a new one. The log has it too.',
    '123e4567-e89b-42d3-a456-426614174000',
  ),
  'WWW-Authenticate': header('The bearer challenge (RFC 6750).', 'Bearer realm="petstore"'),
  'Retry-After': header('Seconds to wait before a retry. Absent if a retry does not help.', '1'),
  'Preference-Applied': header('Present if the request asked for `Prefer: handling=strict`.', 'handling=strict'),
  'Idempotency-Replayed': header(
    '`true` if an earlier request with the same Idempotency-Key created the animal.',
    'true',
  ),
  RateLimit: header('The requests left in the window, if a rate limit is configured.', '"default";r=42;t=1'),
  'RateLimit-Policy': header('The rate limit, if one is configured.', '"default";q=100;w=1'),
  NextPage: header(
    'The next page as `rel="next"` (RFC 8288), if there is one.',
    `<${versionPrefix}/pets?limit=20&status=available&cursor=${exampleCursor}>; rel="next"`,
  ),
  'X-Next-Cursor': header('The cursor of the next page, if there is one.', exampleCursor),
  Location: header('The address of the new animal.', `${versionPrefix}/pets/1`),
  Deprecation: header('When the operation was deprecated (RFC 9745).', '@1794700800'),
  Sunset: header('When the operation will be removed (RFC 8594).', 'Thu, 05 Dec 2030 00:00:00 GMT'),
  DeprecationLinks: header(
    '`rel="deprecation"`: the documentation. `rel="successor-version"`: the replacement.',
    `</docs#/pets/getPet>; rel="deprecation", <${versionPrefix}/pets?status=available>; rel="successor-version"`,
  ),
}

type HeaderRefs = Readonly<Record<string, Ref>>
const headerRefs = (...names: (keyof typeof headers)[]): HeaderRefs =>
  Object.fromEntries(names.map(name => [name, refTo('headers', name)]))

/** Generators make a type for each header of each response, so only useful headers are described. */
const success = headerRefs('X-Request-Id', 'RateLimit', 'RateLimit-Policy', 'Preference-Applied')
const deprecated = { ...headerRefs('Deprecation', 'Sunset'), Link: refTo('headers', 'DeprecationLinks') }

function errorResponse(codes: readonly [ErrorCode, ...ErrorCode[]], headers: HeaderRefs = {}) {
  const { status, meaning } = errorCodes[codes[0]]
  return {
    description: codes.map(code => `\`${code}\`: ${errorCodes[code].meaning}`).join(' '),
    headers: { ...headerRefs('X-Request-Id'), ...headers },
    content: json('Error', { code: codes[0], message: meaning, status }),
  }
}

const responses = {
  BadRequest: errorResponse(['invalid_request', 'invalid_json', 'missing_body']),
  Unauthorized: errorResponse(['missing_api_key', 'invalid_api_key'], headerRefs('WWW-Authenticate')),
  Forbidden: errorResponse(['read_only_key', 'insufficient_permission'], headerRefs('WWW-Authenticate')),
  NotFound: errorResponse(['pet_not_found'], deprecated),
  IdempotencyKeyReused: errorResponse(['idempotency_key_reused']),
  TooManyRequests: errorResponse(['rate_limited'], headerRefs('Retry-After', 'RateLimit', 'RateLimit-Policy')),
  Unavailable: errorResponse(['store_unavailable', 'ids_exhausted'], headerRefs('Retry-After')),
  OtherError: {
    ...errorResponse(['internal_error']),
    description: `Any other error. \`status\` and \`code\` say which: ${otherErrors()}.`,
  },
}

/** Codes of statuses that some operation does not list. */
function otherErrors(): string {
  const codes: readonly ErrorCode[] = [
    'invalid_request',
    'invalid_cursor',
    'not_found',
    'method_not_allowed',
    'request_timeout',
    'body_too_large',
    'unsupported_media_type',
    'unsupported_content_encoding',
    'internal_error',
  ]
  return codes.map(code => `\`${code}\` (${errorCodes[code].status})`).join(', ')
}

const responseRef = (name: keyof typeof responses) => refTo('responses', name)
const commonResponses = {
  '401': responseRef('Unauthorized'),
  '403': responseRef('Forbidden'),
  '429': responseRef('TooManyRequests'),
  '503': responseRef('Unavailable'),
  default: responseRef('OtherError'),
}

const listPets = {
  operationId: 'listPets',
  tags: ['pets'],
  summary: 'List animals',
  description: 'Ascending by identifier. While more animals follow, Link and X-Next-Cursor lead to the next page.',
  parameters: parameterRefs('limit', 'status', 'cursor', 'Prefer'),
  responses: {
    '200': {
      description: 'A page of animals.',
      headers: { ...success, Link: refTo('headers', 'NextPage'), ...headerRefs('X-Next-Cursor') },
      content: json('Pets', [storedRex]),
    },
    ...commonResponses,
  },
}

const createPet = {
  operationId: 'createPet',
  tags: ['pets'],
  summary: 'Add an animal',
  description: `The body is UTF-8 and at most ${bodyBytesMax} bytes. A 201 response means the animal is on disk.`,
  parameters: parameterRefs('Idempotency-Key', 'Prefer'),
  requestBody: { required: true, description: 'The animal to add.', content: json('NewPet', rex) },
  responses: {
    '201': {
      description: 'The animal, with its identifier.',
      headers: { ...success, ...headerRefs('Location', 'Idempotency-Replayed') },
      content: json('Pet', storedRex),
    },
    '400': responseRef('BadRequest'),
    '422': responseRef('IdempotencyKeyReused'),
    ...commonResponses,
  },
}

const getPet = {
  operationId: 'getPet',
  tags: ['pets'],
  summary: 'Fetch an animal',
  description: 'Deprecated, to be removed on 5 December 2030. Use `GET /pets` with a status filter instead.',
  deprecated: true,
  parameters: parameterRefs('petId', 'Prefer'),
  responses: {
    '200': {
      description: 'The animal.',
      headers: { ...success, ...deprecated },
      content: json('Pet', storedRex),
    },
    '404': responseRef('NotFound'),
    ...commonResponses,
  },
}
