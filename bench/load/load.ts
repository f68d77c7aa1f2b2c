/** Any 16 characters will do: the servers listen on 127.0.0.1 and live for some minutes. */
export const benchKey = 'bench-key-0123456789'

export const newPet = '{"name":"Rex","categoryId":7,"status":"available"}'

/** What is asked, again and again. */
export type Requests =
  | { readonly kind: 'read'; readonly path: string }
  | ({ readonly kind: 'get' } & Scattered)
  | { readonly kind: 'create'; readonly createPath: string }
  | ({ readonly kind: 'mix'; readonly path: string; readonly createPath: string } & Scattered)

/** Ids all over a range: a server that kept the last animal would gain nothing. */
export interface Scattered {
  readonly getPrefix: string
  readonly fromId: number
  readonly toId: number
}

/** Of 50 requests of a mix: 90% list, 8% get, 2% create. */
export const mixOfFifty = { list: 45, get: 4, create: 1 } as const

export interface Load {
  readonly origin: string
  readonly requests: Requests
  readonly connections: number
  readonly seconds: number
}

export interface Measured {
  readonly requestsPerSecond: number
  readonly requests: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers other than 2xx, and broken connections. */
  readonly failures: number
}
