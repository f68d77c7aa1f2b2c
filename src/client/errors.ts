import type { RateLimit } from './headers.ts'
import { omitUndefined } from './json.ts'

type ErrorDetails = Pick<PetstoreError, 'code'> &
  Partial<Pick<PetstoreError, 'status' | 'requestId' | 'retryAfterSeconds' | 'rateLimit' | 'cause'>>

/** Every failure of a call, except the caller's own abort and a TypeError for invalid arguments. */
export class PetstoreError extends Error {
  override readonly name: string = 'PetstoreError'
  /** The service's error code, or `connection_failed`, `timeout`, `outcome_unknown` or `unexpected_response`. */
  declare readonly code: string
  /** The HTTP status, if there was a response. */
  declare readonly status: number | undefined
  /** Identifies the request in the operator's log. */
  declare readonly requestId: string | undefined
  /** How long the server asked to wait. */
  declare readonly retryAfterSeconds: number | undefined
  /** The rate limit of the key, if the response reported one. */
  declare readonly rateLimit: RateLimit | undefined

  constructor(message: string, { cause, ...details }: ErrorDetails) {
    super(message, cause === undefined ? {} : { cause })
    // A printed error then shows only what is known.
    Object.assign(this, omitUndefined(details))
  }

  /** With the message, which JSON.stringify omits from other errors. */
  toJSON(): object {
    return { ...this, message: this.message }
  }
}

/** 400 and every 4xx without a class of its own: correct the request. */
export class InvalidRequestError extends PetstoreError {
  override readonly name = 'InvalidRequestError'
}

/** 401: the API key is missing, unknown, expired or revoked. */
export class UnauthorizedError extends PetstoreError {
  override readonly name = 'UnauthorizedError'
}

/** 403: the API key lacks the permission. */
export class ForbiddenError extends PetstoreError {
  override readonly name = 'ForbiddenError'
}

/** 404: no animal has this id (`pet_not_found`), or the base address is wrong (`not_found`). */
export class NotFoundError extends PetstoreError {
  override readonly name = 'NotFoundError'
}

/** 409: the animal does not have the status `ifStatus` now (`status_changed`). */
export class ConflictError extends PetstoreError {
  override readonly name = 'ConflictError'
}

/** 429: too many requests with this API key. */
export class RateLimitedError extends PetstoreError {
  override readonly name = 'RateLimitedError'
}

/** 503, or 502 or 504 from a proxy: the same request may succeed later. */
export class ServiceUnavailableError extends PetstoreError {
  override readonly name = 'ServiceUnavailableError'
}

/** 500 and every other 5xx: report the request id to the operator. */
export class ServerError extends PetstoreError {
  override readonly name = 'ServerError'
}

/** No complete response: the host is unknown, nothing listens there, or the connection broke. */
export class ConnectionError extends PetstoreError {
  override readonly name = 'ConnectionError'
}

/** No complete response in time, or 408: the server did not receive the complete request in time. */
export class TimeoutError extends PetstoreError {
  override readonly name = 'TimeoutError'
}

/** An update with `ifStatus` failed, and may be stored: fetch the animal, then decide. `cause` is the failure. */
export class OutcomeUnknownError extends PetstoreError {
  override readonly name = 'OutcomeUnknownError'
}

/** A response that a pet store does not send: a proxy's page, a redirect, a body of another shape. */
export class UnexpectedResponseError extends PetstoreError {
  override readonly name = 'UnexpectedResponseError'
}
