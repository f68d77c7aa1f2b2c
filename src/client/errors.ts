import { omitUndefined } from './json.ts'

type ErrorDetails = Pick<PetstoreError, 'code'> &
  Partial<Pick<PetstoreError, 'status' | 'requestId' | 'retryAfterSeconds' | 'cause'>>

/**
 * Every failure of a call, except the caller's own abort and a TypeError for invalid arguments. Without a class of its
 * own, such as 500: report the request id to the operator.
 */
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

  constructor(message: string, { cause, ...details }: ErrorDetails) {
    super(message, cause === undefined ? {} : { cause })
    // A printed error then shows only what is known.
    Object.assign(this, omitUndefined(details))
  }
}

/** 4xx: the service refuses the request, and `code` says why. The same request is refused again. */
export class RefusedError extends PetstoreError {
  override readonly name = 'RefusedError'
}

/**
 * No complete response (`connection_failed`, `timeout`), or 408, 429, 502, 503 or 504: the same call may succeed later.
 * `cause` is the system's code, such as `ECONNREFUSED`; absent in browsers.
 */
export class TemporaryError extends PetstoreError {
  override readonly name = 'TemporaryError'
}

/** An update with `ifStatus` failed, and may be stored: fetch the animal, then decide. `cause` is the failure. */
export class OutcomeUnknownError extends PetstoreError {
  override readonly name = 'OutcomeUnknownError'
}

/** A response that a pet store does not send: a proxy's page, a redirect, a body of another shape. */
export class UnexpectedResponseError extends PetstoreError {
  override readonly name = 'UnexpectedResponseError'
}
