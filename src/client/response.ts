/** How many requests the API key may still send. */
export interface RateLimit {
  /** The most requests in a window. */
  readonly limit: number
  readonly windowSeconds: number
  /** Requests that are left in this window. */
  readonly remaining: number
  /** Seconds until the next window. */
  readonly resetSeconds: number
}

/** The response to a call. */
export interface ResponseDetails {
  readonly status: number
  /** Identifies the request in the operator's log. */
  readonly requestId: string | undefined
  /** Undefined if the service has no rate limit. */
  readonly rateLimit: RateLimit | undefined
  /** A copy. If the server echoed the API key, `***` replaces it. */
  readonly headers: Headers
}

/** Weak and outside of the animals, so that these stay plain objects. */
const responses = new WeakMap<object, ResponseDetails>()

/** The response that a call got for this animal or page; undefined for a copy and for an animal of a page. */
export function responseOf(petOrPage: object): ResponseDetails | undefined {
  return responses.get(petOrPage)
}

export function setResponse(petOrPage: object, response: ResponseDetails): void {
  responses.set(petOrPage, response)
}

/** No error and no hook shows the key, even if the server or `fetch` echoes it. */
export function mask(text: string, apiKey: string): string {
  return text.replaceAll(apiKey, '***')
}

export function readDetails({ status, headers: received }: Response, apiKey: string): ResponseDetails {
  const headers = new Headers([...received].map(([name, value]) => [name, mask(value, apiKey)]))
  return { status, requestId: headers.get('x-request-id') ?? undefined, rateLimit: readRateLimit(headers), headers }
}

/** Reads RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers); undefined unless both are complete. */
export function readRateLimit(headers: Headers): RateLimit | undefined {
  const [policy, state] = [headers.get('ratelimit-policy'), headers.get('ratelimit')]
  const limit = parameterIn(policy, 'q')
  const windowSeconds = parameterIn(policy, 'w')
  const remaining = parameterIn(state, 'r')
  const resetSeconds = parameterIn(state, 't')
  const values = { limit, windowSeconds, remaining, resetSeconds }
  return Object.values(values).some(Number.isNaN) ? undefined : values
}

/** An integer parameter of the first item, such as `r` in `"default";r=42;t=1`; NaN if there is none. */
function parameterIn(header: string | null, name: string): number {
  const [, digits] = new RegExp(`^"[^"]*"(?:[^",]|"[^"]*")*; *${name}=(\\d{1,15})(?![^;,])`).exec(header ?? '') ?? []
  return Number(digits)
}
