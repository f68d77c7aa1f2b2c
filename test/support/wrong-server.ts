type JsonObject = Readonly<Record<string, unknown>>

/** A response before it is serialized: the integers of the body are bigints. */
interface Reply {
  readonly status: number
  readonly body: unknown
  /** Default: application/json. */
  readonly type?: string
}

export interface Asked {
  readonly method: string
  /** Relative to the base address, which may have any prefix: `/pets`; empty elsewhere. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly body: string
}

type Respond = (asked: Asked) => Reply

/** Changes a request, the response, or both. */
export type Defect = (asked: Asked, respond: Respond) => Reply

export const key = 'the-only-key'
const statuses = ['available', 'pending', 'sold']

/**
 * A server with these defects. Apart from them it follows the interface but not our decisions: it lists the newest animal
 * first, clamps limits, sets an absent status to available, and refuses unknown properties.
 */
export function startWrongServer(...defects: readonly Defect[]) {
  const pets = Array.from({ length: 25 }, (_, index): JsonObject => {
    const id = BigInt(index + 1)
    return { id, name: `animal ${id}`, categoryId: 2n ** 63n - id, status: statuses[Number(id % 3n)] }
  })
  const respond = defects.reduce<Respond>(
    (next, defect) => asked => defect(asked, next),
    asked => replyTo(asked, pets),
  )
  /** The method of every request so far. */
  const methods: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      methods.push(request.method)
      const { pathname, searchParams: query } = new URL(request.url)
      const path = pathname.replace(/^\/[^/]+/, '')
      const { method, headers } = request
      const {
        status,
        body,
        type = 'application/json',
      } = respond({ method, path, query, headers, body: await request.text() })
      return new Response(body === undefined ? null : jsonOf(body), { status, headers: { 'Content-Type': type } })
    },
  })
  const url = `http://127.0.0.1:${server.port}/v1`
  return { url, key, methods, [Symbol.dispose]: () => void server.stop(true) }
}

export function error(status: number): Reply {
  return { status, body: { code: `E${status}`, message: 'Sorry', status: BigInt(status) } }
}

function replyTo({ method, path, query, headers, body }: Asked, pets: JsonObject[]): Reply {
  const [, id] = /^\/pets(?:\/([^/]+))?$/.exec(path) ?? ['', '']
  if (id === '') return error(404)
  if (headers.get('authorization') !== `Bearer ${key}`) return error(401)
  if (method === 'GET' && id === undefined) return list(query, pets)
  if (method === 'POST' && id === undefined) return create(body, pets)
  const found = pets.find(pet => method === 'GET' && String(pet['id']) === id)
  return found ? { status: 200, body: found } : error(404)
}

function list(query: URLSearchParams, pets: readonly JsonObject[]): Reply {
  const limit = Math.min(Math.max(Math.trunc(Number(query.get('limit') || 20)) || 20, 1), 100)
  const status = query.get('status')
  const fitting = pets.filter(pet => !status || pet['status'] === status)
  return { status: 200, body: fitting.toReversed().slice(0, limit) }
}

function create(body: string, pets: JsonObject[]): Reply {
  const sent = parsed(body)
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) return error(400)
  const { name, categoryId, status, ...others } = sent as JsonObject
  const chosen = status ?? 'available'
  if (typeof name !== 'string' || typeof categoryId !== 'bigint' || typeof chosen !== 'string') return error(400)
  if (categoryId !== BigInt.asIntN(64, categoryId) || !statuses.includes(chosen)) return error(400)
  if (Object.keys(others).length > 0) return error(400)
  const added = { id: BigInt(pets.length + 1), name, categoryId, status: chosen }
  pets.push(added)
  return { status: 201, body: added }
}

/** Undefined if the text is not JSON. */
function parsed(text: string): unknown {
  const exact = (_: string, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' && /^-?\d+$/.test(context?.source ?? '') ? BigInt(context?.source ?? 0) : value
  try {
    return JSON.parse(text, exact)
  } catch {
    return undefined
  }
}

export function jsonOf(value: unknown): string {
  // TypeScript does not know JSON.rawJSON yet.
  const rawJson: (text: string) => unknown = Reflect.get(JSON, 'rawJSON')
  return JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? rawJson(String(inner)) : inner))
}

/** Changes every request. */
export function hearing(change: (asked: Asked) => Asked): Defect {
  return (asked, respond) => respond(change(asked))
}

/** Changes every response. */
export function changing(change: (reply: Reply, asked: Asked) => Reply): Defect {
  return (asked, respond) => change(respond(asked), asked)
}

/** Changes the body of every response with this status, except lists. */
export function answering(status: number, change: (body: JsonObject) => unknown): Defect {
  return changing(reply =>
    reply.status === status && !Array.isArray(reply.body)
      ? { ...reply, body: change(reply.body as JsonObject) }
      : reply,
  )
}
