/** What is known of a failure beside its message. */
export interface ErrorDetails {
  /** What to decide by: the service's own code, or `connection_failed`, `timeout` or `unexpected_response`. */
  readonly code: string
  /** The HTTP status, where there was an answer. */
  readonly status?: number | undefined
  /** Under which the operator finds the request in the log. */
  readonly requestId?: string | undefined
  /** How long the server asked to wait. */
  readonly retryAfterSeconds?: number | undefined
  readonly cause?: unknown
}

/** Everything that the client fails with, except a caller's own abort and a TypeError for what cannot be sent. */
export class PetstoreError extends Error {
  override readonly name: string = 'PetstoreError'
  readonly code: string
  readonly status: number | undefined
  readonly requestId: string | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(message: string, { code, status, requestId, retryAfterSeconds, cause }: ErrorDetails) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
    this.status = status
    this.requestId = requestId
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** 400 and every other 4xx without a class of its own: the request has to be mended. */
export class InvalidRequestError extends PetstoreError {
  override readonly name = 'InvalidRequestError'
}

/** 401: the API key is missing, unknown, expired or revoked. */
export class UnauthorizedError extends PetstoreError {
  override readonly name = 'UnauthorizedError'
}

/** 403: the API key may read, but not add. */
export class ForbiddenError extends PetstoreError {
  override readonly name = 'ForbiddenError'
}

/** 404: no animal has this id; with the code `not_found`, the base address is wrong. */
export class NotFoundError extends PetstoreError {
  override readonly name = 'NotFoundError'
}

/** 429: the API key has made too many requests. */
export class RateLimitedError extends PetstoreError {
  override readonly name = 'RateLimitedError'
}

/** 503, and 502 or 504 of a proxy: the same request may succeed later. */
export class ServiceUnavailableError extends PetstoreError {
  override readonly name = 'ServiceUnavailableError'
}

/** 500 and every other 5xx: the service failed, and its operator needs the request id. */
export class ServerError extends PetstoreError {
  override readonly name = 'ServerError'
}

/** No answer, or not the whole of it: nothing listens, the name is unknown, the connection broke. */
export class ConnectionError extends PetstoreError {
  override readonly name = 'ConnectionError'
}

/** No whole answer in time; or 408, where the server had not got the whole request in time. */
export class TimeoutError extends PetstoreError {
  override readonly name = 'TimeoutError'
}

/** An answer that a pet store does not give: a proxy's page, a redirect, another shape. */
export class UnexpectedResponseError extends PetstoreError {
  override readonly name = 'UnexpectedResponseError'
}

/** The class for an answer of this status, from 400 on. */
export function errorClassOf(status: number): typeof PetstoreError {
  return byStatus.get(status) ?? (status < 500 ? InvalidRequestError : ServerError)
}

const byStatus = new Map<number, typeof PetstoreError>([
  [401, UnauthorizedError],
  [403, ForbiddenError],
  [404, NotFoundError],
  [408, TimeoutError],
  [429, RateLimitedError],
  [502, ServiceUnavailableError],
  [503, ServiceUnavailableError],
  [504, ServiceUnavailableError],
])
