/**
 * Every way in which a request can fail: a published set, which may grow. There is one code for each thing that a client would
 * do differently; what exactly was wrong is in the message.
 */
export const problems = {
  missing_api_key: { status: 401, meaning: 'No bearer credential was sent. Send the API key.' },
  invalid_api_key: { status: 401, meaning: 'The API key is unknown, expired or revoked. Get another one.' },
  read_only_key: { status: 403, meaning: 'The API key may read but not add. Use one that may write.' },
  insufficient_permission: {
    status: 403,
    meaning: 'The API key is for something else: the catalogue, or the metrics. Use one with the permission.',
  },
  not_found: { status: 404, meaning: 'Nothing is at this path. Correct the address.' },
  pet_not_found: { status: 404, meaning: 'No animal has this identifier.' },
  method_not_allowed: {
    status: 405,
    meaning: 'The path does not take this method. Allow lists those it takes.',
  },
  request_timeout: { status: 408, meaning: 'The body came too slowly. Send it again, faster.' },
  body_too_large: { status: 413, meaning: 'The body is larger than the limit. Send less.' },
  unsupported_media_type: { status: 415, meaning: 'The body is of another type. Send application/json.' },
  unsupported_content_encoding: { status: 415, meaning: 'The body is compressed. Send it as it is.' },
  missing_body: { status: 400, meaning: 'The body is missing or empty. Send the animal.' },
  invalid_json: { status: 400, meaning: 'The body is not JSON in UTF-8. Mend how it is written.' },
  invalid_request: {
    status: 400,
    meaning: 'Parameters or properties break a rule. Mend those that the message names.',
  },
  invalid_cursor: {
    status: 400,
    meaning: 'The cursor is not one of this list. Begin again at its first page.',
  },
  idempotency_key_reused: {
    status: 422,
    meaning: 'The Idempotency-Key stands for another animal. Send a new key for a new animal.',
  },
  rate_limited: {
    status: 429,
    meaning: 'The API key has made too many requests. Try again after Retry-After seconds.',
  },
  internal_error: { status: 500, meaning: 'The service failed. Report the request id.' },
  ids_exhausted: {
    status: 503,
    meaning: 'The store has no id left for another animal. Do not retry; the operator moves the catalogue.',
  },
  store_unavailable: {
    status: 503,
    meaning: 'The store does not answer now. Try again after Retry-After seconds.',
  },
} as const satisfies Record<string, { status: number; meaning: string }>

export type ProblemCode = keyof typeof problems

/** A message repeats what was sent, and somebody may send a key where it does not belong: of that only the first part. */
export function errorToJson(code: ProblemCode, message: string): string {
  const safe = message.replace(/(pets_\w{4})\w{8,}/g, '$1…')
  return JSON.stringify({ code, message: safe, status: problems[code].status })
}
