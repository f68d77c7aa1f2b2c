// The interface as data: its operations with their parameters, headers, error codes and limits.
import { int64, type JsonSchema } from '../field.ts'
import { cursorSchema, limitDefault, pageLimit, writeCursor } from '../page.ts'
import { type PetStatus, petStatus } from '../pet.ts'
import { idempotencyKeyMs } from '../store-contract.ts'
import { idempotencyKey } from './query.ts'

/** The prefix of the paths below: the interface's major version. */
export const versionPrefix = '/v1'

const petsPath = '/pets'
const petPath = `${petsPath}/{petId}`

export const bodyBytesMax = 64 * 1024
/** The most pieces of a body without Content-Length. A chunk is a piece, and takes about 1 µs of the event loop. */
export const bodyPiecesMax = 4_096
/** A body must arrive completely within this time. */
export const bodySecondsMax = 10

/** Announced on 15 November 2026; the interface gives the date of removal. */
const getPetDeprecation = { since: '@1794700800', sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' }

/** Valid with `status=available`, the example of that parameter. */
const exampleCursor = writeCursor(20n, 'available')

/** `baseUrl` ends in the version prefix. The successor lists the animals of this status; without one, all. */
export function deprecationLinks(baseUrl: string, status: PetStatus | undefined): string {
  const siteUrl = baseUrl.slice(0, -versionPrefix.length)
  const successor = `${baseUrl}${petsPath}${status === undefined ? '' : `?status=${status}`}`
  return `<${siteUrl}/docs#/pets/getPet>; rel="deprecation"; type="text/html", <${successor}>; rel="successor-version"`
}

const jsonType = 'application/json'
const patchTypes = [jsonType, 'application/merge-patch+json'] as const

const header = (description: string, example: string, name?: string) => ({ description, example, name })

/** The headers of responses, except those for connections and caches. Link has a name for each of its meanings. */
export const headers = {
  'X-Request-Id': header(
    'The id of the request: your own if you sent a valid one, otherwise a new one. Give it to the operator if you need help.',
    '123e4567-e89b-42d3-a456-426614174000',
  ),
  'WWW-Authenticate': header('The bearer challenge (RFC 6750).', 'Bearer realm="petstore"'),
  Allow: header('The methods that the path supports.', 'GET, HEAD'),
  Accept: header('The media type that a body must have.', jsonType),
  'Accept-Patch': header('The media types that a body may have (RFC 5789).', patchTypes.join(', ')),
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

/** `action` is what the client or its author should do. */
const error = (status: number, meaning: string, action: string) => ({ status, meaning, action })

/** Every error code: a published set that may grow. One code for each thing that a client would do differently. */
export const errorCodes = {
  missing_api_key: error(401, 'The request has no API key.', 'Send it in the header Authorization: Bearer <API_KEY>.'),
  invalid_api_key: error(401, 'The API key is unknown, expired or revoked.', 'Use another key.'),
  read_only_key: error(403, 'The API key may only read.', 'Use a key that may write.'),
  insufficient_permission: error(
    403,
    'The API key lacks the permission.',
    'Use a key with the permission that is needed: manage to change and remove animals, metrics for /metrics.',
  ),
  not_found: error(404, 'There is nothing at this path.', 'Correct the address.'),
  pet_not_found: error(404, 'No animal has this identifier.', 'Check the identifier.'),
  status_changed: error(409, 'The animal has another status now.', 'Fetch it again and decide.'),
  method_not_allowed: error(405, 'The path does not support this method.', 'Use one from the Allow header.'),
  request_timeout: error(408, `The body did not arrive within ${bodySecondsMax} seconds.`, 'Send the body faster.'),
  body_too_large: error(
    413,
    `The body has more than ${bodyBytesMax} bytes, or more than ${bodyPiecesMax} pieces.`,
    'Send less, or larger chunks.',
  ),
  unsupported_media_type: error(415, 'The body has another media type.', `Send ${jsonType}.`),
  unsupported_content_encoding: error(415, 'The body is compressed.', 'Send the body uncompressed.'),
  missing_body: error(400, 'There is no body.', 'Send a JSON object.'),
  invalid_json: error(400, 'The body is not valid JSON in UTF-8.', 'Correct the body.'),
  invalid_request: error(400, 'Parameters or properties are invalid.', 'Correct those that the message names.'),
  invalid_cursor: error(400, 'The cursor does not belong to this list.', 'Start again at the first page.'),
  idempotency_key_reused: error(
    422,
    'The Idempotency-Key was used for another animal.',
    'Send a new key for a new animal.',
  ),
  rate_limited: error(429, 'Too many requests.', 'Retry after the seconds in Retry-After.'),
  internal_error: error(
    500,
    'The service failed.',
    'Report the request id. Repeat a creation only with its Idempotency-Key.',
  ),
  ids_exhausted: error(503, 'The store has no id left.', 'Do not retry; tell the operator.'),
  store_unavailable: error(
    503,
    'The store is unavailable.',
    'Retry after the seconds in Retry-After. Repeat a creation with its Idempotency-Key.',
  ),
  store_damaged: error(503, 'The store is damaged.', 'Do not retry; the operator has to restore a backup.'),
}

export type ErrorCode = keyof typeof errorCodes

/** The headers of an error, if they are not those of every response of an operation. */
export const errorHeaderIds: { readonly [Code in ErrorCode]?: readonly HeaderId[] } = {
  missing_api_key: ['WWW-Authenticate'],
  invalid_api_key: ['WWW-Authenticate'],
  read_only_key: [...rateLimitHeaderIds, 'WWW-Authenticate'],
  insufficient_permission: [...rateLimitHeaderIds, 'WWW-Authenticate'],
  not_found: rateLimitHeaderIds,
  method_not_allowed: [...rateLimitHeaderIds, 'Allow'],
  unsupported_content_encoding: [...operationHeaderIds, 'Accept-Encoding'],
  rate_limited: [...rateLimitHeaderIds, 'Retry-After'],
  store_unavailable: [...operationHeaderIds, 'Retry-After'],
}

/** The same request may succeed later. */
export const retriedCodes: readonly ErrorCode[] = ['request_timeout', 'rate_limited', 'store_unavailable']

/** The errors that every operation may give, by the name of their response in the OpenAPI document. */
export const sharedErrors: Readonly<Record<string, readonly ErrorCode[]>> = {
  Unauthorized: ['missing_api_key', 'invalid_api_key'],
  Forbidden: ['insufficient_permission'],
  TooManyRequests: ['rate_limited'],
  InternalError: ['internal_error'],
  Unavailable: ['store_unavailable', 'store_damaged'],
}

/** As the OpenAPI document describes it. The id is different from those of all others. */
export type Parameter = ReturnType<typeof parameter>

type Place = 'query' | 'path' | 'header'
const parameter = (name: string, place: Place, schema: JsonSchema, description: string, example?: unknown) => {
  return { id: name, name, in: place, schema, description, example } as const
}

const ifStatusHelp = 'Only if the animal has this status now; otherwise 409, and nothing changes.'

export const parameters = {
  limit: parameter('limit', 'query', pageLimit.schema, 'The maximum number of animals to return.', limitDefault),
  status: parameter('status', 'query', petStatus.schema, 'Only animals with this status.', 'available'),
  ifStatus: { ...parameter('status', 'query', petStatus.schema, ifStatusHelp, 'available'), id: 'ifStatus' },
  cursor: parameter(
    'cursor',
    'query',
    cursorSchema,
    'The X-Next-Cursor of the previous page, with the same status. Opaque.',
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

/** The body of a request. */
export interface BodyRow {
  readonly schema: 'NewPet' | 'PetChanges'
  readonly mediaTypes: readonly string[]
  /** The header of a 415 response that lists them. */
  readonly mediaTypesHeader: 'Accept' | 'Accept-Patch'
}

export interface OperationRow {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Under the version prefix. */
  readonly path: string
  readonly access: 'read' | 'write' | 'manage'
  /** May change in a minor version. */
  readonly stability?: 'experimental'
  readonly summary: string
  readonly description: string
  readonly parameters: readonly Parameter[]
  readonly body?: BodyRow
  readonly status: number
  /** Absent if a success has no body. */
  readonly returns?: 'Pet' | 'Pets'
  readonly result: string
  /** Of a success, besides those that every response of an operation has. */
  readonly headers?: readonly HeaderId[]
  /** Besides those that every operation shares. */
  readonly errors: readonly ErrorCode[]
  /** The metric that counts the animals that the operation creates, changes or removes. */
  readonly counter?: { readonly name: string; readonly help: string }
  /** Calls are counted for each key. The handler announces it in its responses. */
  readonly deprecated?: typeof getPetDeprecation
}

const bodyErrors = [
  'invalid_request',
  'invalid_json',
  'missing_body',
  'request_timeout',
  'body_too_large',
  'unsupported_media_type',
  'unsupported_content_encoding',
] as const

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
    body: { schema: 'NewPet', mediaTypes: [jsonType], mediaTypesHeader: 'Accept' },
    status: 201,
    returns: 'Pet',
    result: 'The animal, with its identifier.',
    headers: ['Location', 'Idempotency-Replayed'],
    errors: [...bodyErrors, 'read_only_key', 'idempotency_key_reused', 'ids_exhausted'],
    counter: { name: 'petstore_pets_created_total', help: 'Animals added.' },
  },
  getPet: {
    method: 'GET',
    path: petPath,
    access: 'read',
    summary: 'Fetch an animal',
    description: `Deprecated, to be removed on 5 December 2030. Use \`GET ${petsPath}\` with a status filter instead.`,
    parameters: [parameters.petId, parameters.prefer],
    status: 200,
    returns: 'Pet',
    result: 'The animal.',
    errors: ['invalid_request', 'pet_not_found'],
    deprecated: getPetDeprecation,
  },
  updatePet: {
    method: 'PATCH',
    path: petPath,
    access: 'manage',
    stability: 'experimental',
    summary: 'Change an animal',
    description: 'A 200 response means the change is on disk.',
    parameters: [parameters.petId, parameters.ifStatus, parameters.prefer],
    body: { schema: 'PetChanges', mediaTypes: patchTypes, mediaTypesHeader: 'Accept-Patch' },
    status: 200,
    returns: 'Pet',
    result: 'The animal after the change.',
    errors: [...bodyErrors, 'pet_not_found', 'status_changed'],
    counter: { name: 'petstore_pets_updated_total', help: 'Animals changed.' },
  },
  deletePet: {
    method: 'DELETE',
    path: petPath,
    access: 'manage',
    stability: 'experimental',
    summary: 'Remove an animal',
    description: 'For good: its identifier is not assigned again. A 204 response means the removal is on disk.',
    parameters: [parameters.petId, parameters.ifStatus, parameters.prefer],
    status: 204,
    result: 'The animal is removed.',
    errors: ['invalid_request', 'pet_not_found', 'status_changed'],
    counter: { name: 'petstore_pets_removed_total', help: 'Animals removed.' },
  },
} as const satisfies Readonly<Record<string, OperationRow>>

export type OperationId = keyof typeof operations
