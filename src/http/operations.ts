import type { Field } from '../field.ts'
import { cursorFor, limitDefault, pageLimit, writeCursor } from '../page.ts'
import { petStatus } from '../pet.ts'
import { idempotencyKeyMs } from '../store.ts'
import { idempotencyKey, int64Text, type Parameter, strictHandling } from './request.ts'

/** The prefix of the paths below: the interface's major version. */
export const versionPrefix = '/v1'

const petsPath = '/pets'

export const bodyBytesMax = 64 * 1024

/** Announced on 15 November 2026; the interface gives the date of removal. */
const getPetDeprecation = {
  since: '@1794700800',
  sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
  successor: `${petsPath}?status=available`,
}

/** Valid with `status=available`, the example of that parameter. */
const exampleCursor = writeCursor(20n, 'available')

const header = (description: string, example: string, name?: string) => ({ description, example, name })

/** The headers of responses, except those for connections and caches. Link has a name for each of its meanings. */
export const headers = {
  'X-Request-Id': header(
    'The id that the client sent if it is safe, otherwise a new one. The log has it too.',
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
    `</docs#/pets/getPet>; rel="deprecation", <${versionPrefix}${getPetDeprecation.successor}>; rel="successor-version"`,
    'Link',
  ),
}

export type HeaderId = keyof typeof headers

const error = (status: number, meaning: string, headers: readonly HeaderId[]) => ({ status, meaning, headers })

const challenge = ['WWW-Authenticate'] as const
/** Of every response to a valid key. */
const limited = ['RateLimit', 'RateLimit-Policy'] as const
/** Of every response that an operation gives. */
export const handled = [...limited, 'Preference-Applied'] as const

/** Every error code: a published set that may grow. One code for each thing that a client would do differently. */
export const errorCodes = {
  missing_api_key: error(401, 'The request has no API key. Send one.', challenge),
  invalid_api_key: error(401, 'The API key is unknown, expired or revoked. Use another one.', challenge),
  read_only_key: error(403, 'The API key may only read. Use one that may write.', [...limited, ...challenge]),
  insufficient_permission: error(
    403,
    'The API key lacks the permission. Use a catalogue key for /v1, a metrics key for /metrics.',
    [...limited, ...challenge],
  ),
  not_found: error(404, 'There is nothing at this path. Correct the address.', limited),
  pet_not_found: error(404, 'No animal has this identifier.', handled),
  method_not_allowed: error(405, 'The path does not support this method. See the Allow header.', [...limited, 'Allow']),
  request_timeout: error(408, 'The body arrived too slowly. Send it again.', handled),
  body_too_large: error(413, `The body is larger than ${bodyBytesMax / 1024} KiB. Send less.`, handled),
  unsupported_media_type: error(415, 'The body is not JSON. Send application/json.', [...handled, 'Accept']),
  unsupported_content_encoding: error(415, 'The body is compressed. Send it uncompressed.', [
    ...handled,
    'Accept-Encoding',
  ]),
  missing_body: error(400, 'The body is missing or empty. Send the animal.', handled),
  invalid_json: error(400, 'The body is not valid JSON in UTF-8. Correct it.', handled),
  invalid_request: error(400, 'Parameters or properties are invalid. Correct those that the message names.', handled),
  invalid_cursor: error(400, 'The cursor does not belong to this list. Start again at the first page.', handled),
  idempotency_key_reused: error(
    422,
    'The Idempotency-Key was used for another animal. Send a new key for a new animal.',
    handled,
  ),
  rate_limited: error(429, 'Too many requests. Retry after the seconds in Retry-After.', [...limited, 'Retry-After']),
  internal_error: error(500, 'The service failed. Report the request id.', handled),
  ids_exhausted: error(503, 'The store has no id left. Do not retry; tell the operator.', handled),
  store_unavailable: error(503, 'The store is unavailable. Retry after the seconds in Retry-After.', [
    ...handled,
    'Retry-After',
  ]),
}

export type ErrorCode = keyof typeof errorCodes

const parameter = <T>(
  name: string,
  place: Parameter['in'],
  field: Field<T>,
  description: string,
  example: unknown,
): Parameter<T> => ({ name, in: place, field, description, example })

export const parameters = {
  limit: parameter('limit', 'query', pageLimit, 'The maximum number of animals to return.', limitDefault),
  status: parameter('status', 'query', petStatus, 'Only animals with this status.', 'available'),
  cursor: parameter(
    'cursor',
    'query',
    cursorFor(undefined),
    'Where the page starts: X-Next-Cursor of the previous page, with the same status. Its form may change.',
    exampleCursor,
  ),
  petId: parameter('petId', 'path', int64Text, 'The identifier of the animal.', 1),
  idempotencyKey: parameter(
    'Idempotency-Key',
    'header',
    idempotencyKey,
    `The client's own name for this creation, remembered for ${idempotencyKeyMs / 3_600_000} hours: ${idempotencyKey.expected}, counted as they are written. The same key with the same animal returns the first response and adds nothing.`,
    '6f1c0a6e-5d3b-4b67-9d53-0a6f2f0e8f11',
  ),
  prefer: parameter(
    'Prefer',
    'header',
    strictHandling,
    '`handling=strict` (RFC 7240): refuse unknown parameters and properties instead of ignoring them.',
    'handling=strict',
  ),
}

export type Access = 'read' | 'write' | 'metrics'

export interface OperationRow {
  readonly method: 'GET' | 'POST'
  /** Under the version prefix. */
  readonly path: string
  readonly access: Access
  readonly summary: string
  readonly description: string
  readonly parameters: readonly Parameter[]
  /** The schema of the request's body. */
  readonly body?: 'NewPet'
  readonly status: number
  readonly returns: 'Pet' | 'Pets'
  /** Of a success, besides those that every response of an operation has. */
  readonly headers: readonly HeaderId[]
  /** Besides {@link sharedErrors}. */
  readonly errors: readonly ErrorCode[]
  /** Calls are counted for each key. Responses carry the dates and the path of the replacement. */
  readonly deprecated?: { readonly since: string; readonly sunset: string; readonly successor: string }
}

/** The errors of every operation, before it begins or because of a failure: one response for each status. */
export const sharedErrors: Readonly<Record<string, readonly ErrorCode[]>> = {
  Unauthorized: ['missing_api_key', 'invalid_api_key'],
  Forbidden: ['insufficient_permission'],
  TooManyRequests: ['rate_limited'],
  InternalError: ['internal_error'],
  Unavailable: ['store_unavailable'],
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
    headers: [],
    errors: ['invalid_request', 'pet_not_found'],
    deprecated: getPetDeprecation,
  },
} as const satisfies Readonly<Record<string, OperationRow>>

export type OperationId = keyof typeof operations
