import { int64, type JsonSchema } from '../field.ts'
import { cursorSchema, limitDefault, pageLimit, writeCursor } from '../page.ts'
import { type PetStatus, petStatus } from '../pet.ts'
import { idempotencyKeyMs } from '../store.ts'
import { idempotencyKey } from './request.ts'

/** The prefix of the paths below: the interface's major version. */
export const versionPrefix = '/v1'

const petsPath = '/pets'

export const bodyBytesMax = 64 * 1024
/** The most pieces of a body without Content-Length. A chunk is a piece, and takes about 1 µs of the event loop. */
export const bodyPiecesMax = 4_096

/** Announced on 15 November 2026; the interface gives the date of removal. */
const getPetDeprecation = {
  since: '@1794700800',
  sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
}

/** Valid with `status=available`, the example of that parameter. */
const exampleCursor = writeCursor(20n, 'available')

/** `baseUrl` ends in the version prefix. The successor lists the animals of this status. */
export function deprecationLinks(baseUrl: string, status: PetStatus): string {
  const siteUrl = baseUrl.slice(0, -versionPrefix.length)
  const successor = `${baseUrl}${petsPath}?status=${status}`
  return `<${siteUrl}/docs#/pets/getPet>; rel="deprecation"; type="text/html", <${successor}>; rel="successor-version"`
}

const header = (description: string, example: string, name?: string) => ({ description, example, name })

/** The headers of responses, except those for connections and caches. Link has a name for each of its meanings. */
export const headers = {
  'X-Request-Id': header(
    'The id of the request: your own if you sent a valid one, otherwise a new one. Give it to the operator if you need help.',
    '123e4567-e89b-42d3-a456-426614174000',
  ),
  'WWW-Authenticate': header('The bearer challenge (RFC 6750).', 'Bearer realm="petstore"'),
  Allow: header('The methods that the path supports.', 'GET, HEAD'),
  Accept: header('The media type that a body must have.', 'application/json'),
  'Accept-Encoding': header('The content encoding that a body must have.', 'identity'),
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
    `<${versionPrefix}${petsPath}?limit=${limitDefault}&status=available&cursor=${exampleCursor}>; rel="next"`,
    'Link',
  ),
  'X-Next-Cursor': header('The cursor of the next page, if there is one.', exampleCursor),
  Location: header('The address of the new animal.', `${versionPrefix}${petsPath}/1`),
  Deprecation: header('When the operation was deprecated (RFC 9745).', getPetDeprecation.since),
  Sunset: header('When the operation will be removed (RFC 8594).', getPetDeprecation.sunset),
  DeprecationLinks: header(
    '`rel="deprecation"`: the documentation. `rel="successor-version"`: the replacement.',
    deprecationLinks(versionPrefix, 'sold'),
    'Link',
  ),
}

export type HeaderId = keyof typeof headers

const rateLimitHeaderIds = ['RateLimit', 'RateLimit-Policy'] as const
/** Of every response that an operation gives. */
export const operationHeaderIds = [...rateLimitHeaderIds, 'Preference-Applied'] as const

/** `action` is what the client or its author should do; `retry`, whether the same request may succeed later. */
const error = (status: number, meaning: string, action: string, ...headers: HeaderId[]) => {
  return { status, meaning, action, retry: false, headers }
}
/** After the key is accepted. */
const keyError = (status: number, meaning: string, action: string, ...headers: HeaderId[]) =>
  error(status, meaning, action, ...rateLimitHeaderIds, ...headers)
/** By an operation. */
const operationError = (status: number, meaning: string, action: string, ...headers: HeaderId[]) =>
  error(status, meaning, action, ...operationHeaderIds, ...headers)
const temporary = (row: ReturnType<typeof error>) => ({ ...row, retry: true })

/** Every error code: a published set that may grow. One code for each thing that a client would do differently. */
export const errorCodes = {
  missing_api_key: error(401, 'The request has no API key.', 'Send a key.', 'WWW-Authenticate'),
  invalid_api_key: error(401, 'The API key is unknown, expired or revoked.', 'Use another key.', 'WWW-Authenticate'),
  read_only_key: keyError(403, 'The API key may only read.', 'Use a key that may write.', 'WWW-Authenticate'),
  insufficient_permission: keyError(
    403,
    'The API key lacks the permission.',
    'Use a catalogue key for /v1, a metrics key for /metrics.',
    'WWW-Authenticate',
  ),
  not_found: keyError(404, 'There is nothing at this path.', 'Correct the address.'),
  pet_not_found: operationError(404, 'No animal has this identifier.', 'Check the identifier.'),
  method_not_allowed: keyError(
    405,
    'The path does not support this method.',
    'Use one from the Allow header.',
    'Allow',
  ),
  request_timeout: temporary(operationError(408, 'The body arrived too slowly.', 'Retry with a faster connection.')),
  body_too_large: operationError(
    413,
    `The body is larger than ${bodyBytesMax / 1024} KiB, or in too many pieces.`,
    'Send less, or larger chunks.',
  ),
  unsupported_media_type: operationError(415, 'The body is not JSON.', 'Send application/json.', 'Accept'),
  unsupported_content_encoding: operationError(
    415,
    'The body is compressed.',
    'Send the body uncompressed.',
    'Accept-Encoding',
  ),
  missing_body: operationError(400, 'The body is missing or empty.', 'Send the animal.'),
  invalid_json: operationError(400, 'The body is not valid JSON in UTF-8.', 'Correct the body.'),
  invalid_request: operationError(
    400,
    'Parameters or properties are invalid.',
    'Correct those that the message names.',
  ),
  invalid_cursor: operationError(400, 'The cursor does not belong to this list.', 'Start again at the first page.'),
  idempotency_key_reused: operationError(
    422,
    'The Idempotency-Key was used for another animal.',
    'Send a new key for a new animal.',
  ),
  rate_limited: temporary(
    keyError(429, 'Too many requests.', 'Retry after the seconds in Retry-After.', 'Retry-After'),
  ),
  internal_error: operationError(
    500,
    'The service failed.',
    'Report the request id. Repeat a creation only with its Idempotency-Key.',
  ),
  ids_exhausted: operationError(503, 'The store has no id left.', 'Do not retry; tell the operator.'),
  store_damaged: operationError(503, 'The store is damaged.', 'Do not retry; the operator has to restore a backup.'),
  store_unavailable: temporary(
    operationError(
      503,
      'The store is unavailable.',
      'Retry after the seconds in Retry-After. Repeat a creation with its Idempotency-Key.',
      'Retry-After',
    ),
  ),
}

export type ErrorCode = keyof typeof errorCodes

/** As the OpenAPI document describes it. */
export type Parameter = ReturnType<typeof parameter>

type Place = 'query' | 'path' | 'header'
const parameter = (name: string, place: Place, schema: JsonSchema, description: string, example?: unknown) => {
  return { name, in: place, schema, description, example } as const
}

export const parameters = {
  limit: parameter('limit', 'query', pageLimit.schema, 'The maximum number of animals to return.', limitDefault),
  status: parameter('status', 'query', petStatus.schema, 'Only animals with this status.', 'available'),
  cursor: parameter(
    'cursor',
    'query',
    cursorSchema,
    'Where the page starts: X-Next-Cursor of the previous page, with the same status. Its form may change.',
  ),
  petId: parameter('petId', 'path', int64.schema, 'The identifier of the animal.', 1),
  idempotencyKey: parameter(
    'Idempotency-Key',
    'header',
    idempotencyKey.schema,
    `Your own name for this creation, such as a UUID: ${idempotencyKey.expected}. For ${idempotencyKeyMs / 3_600_000} hours, the same key with the same animal returns the first response and adds nothing.`,
    '6f1c0a6e-5d3b-4b67-9d53-0a6f2f0e8f11',
  ),
  prefer: parameter(
    'Prefer',
    'header',
    { type: 'string' },
    '`handling=strict` (RFC 7240): refuse unknown parameters and properties instead of ignoring them.',
    'handling=strict',
  ),
}

export interface OperationRow {
  readonly method: 'GET' | 'POST'
  /** Under the version prefix. */
  readonly path: string
  readonly access: 'read' | 'write'
  readonly summary: string
  readonly description: string
  readonly parameters: readonly Parameter[]
  readonly body?: 'NewPet'
  readonly status: number
  readonly returns: 'Pet' | 'Pets'
  readonly result: string
  /** Of a success, besides those that every response of an operation has. */
  readonly headers: readonly HeaderId[]
  /** Besides {@link sharedErrors}. */
  readonly errors: readonly ErrorCode[]
  /** Calls are counted for each key. The handler announces it in its responses. */
  readonly deprecated?: typeof getPetDeprecation
}

/** The errors of every operation, before it begins or because of a failure: one response for each status. */
export const sharedErrors: Readonly<Record<string, readonly ErrorCode[]>> = {
  Unauthorized: ['missing_api_key', 'invalid_api_key'],
  Forbidden: ['insufficient_permission'],
  TooManyRequests: ['rate_limited'],
  InternalError: ['internal_error'],
  Unavailable: ['store_unavailable', 'store_damaged'],
}

/** Everything that the interface says of each operation. The handlers are in `pets.ts`. */
export const operations = {
  listPets: {
    method: 'GET',
    path: petsPath,
    access: 'read',
    summary: 'List animals',
    description: 'Ascending by identifier. While more animals follow, Link and X-Next-Cursor lead to the next page.',
    parameters: [parameters.limit, parameters.status, parameters.cursor, parameters.prefer],
    status: 200,
    returns: 'Pets',
    result: 'A page of animals.',
    headers: ['NextPage', 'X-Next-Cursor'],
    errors: ['invalid_request', 'invalid_cursor'],
  },
  createPet: {
    method: 'POST',
    path: petsPath,
    access: 'write',
    summary: 'Add an animal',
    description: `The body is UTF-8 and at most ${bodyBytesMax} bytes. A 201 response means the animal is on disk.`,
    parameters: [parameters.idempotencyKey, parameters.prefer],
    body: 'NewPet',
    status: 201,
    returns: 'Pet',
    result: 'The animal, with its identifier.',
    headers: ['Location', 'Idempotency-Replayed'],
    errors: [
      'invalid_request',
      'invalid_json',
      'missing_body',
      'read_only_key',
      'request_timeout',
      'body_too_large',
      'unsupported_media_type',
      'unsupported_content_encoding',
      'idempotency_key_reused',
      'ids_exhausted',
    ],
  },
  getPet: {
    method: 'GET',
    path: `${petsPath}/{petId}`,
    access: 'read',
    summary: 'Fetch an animal',
    description: `Deprecated, to be removed on 5 December 2030. Use \`GET ${petsPath}\` with a status filter instead.`,
    parameters: [parameters.petId, parameters.prefer],
    status: 200,
    returns: 'Pet',
    result: 'The animal.',
    headers: [],
    errors: ['invalid_request', 'pet_not_found'],
    deprecated: getPetDeprecation,
  },
} as const satisfies Readonly<Record<string, OperationRow>>

export type OperationId = keyof typeof operations
