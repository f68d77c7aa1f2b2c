import { stringify } from '../../src/client/index.ts'
import { isJsonObject, readInt64 } from '../../src/int64.ts'
import { readJson } from '../../src/json.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** A response before it is serialized: the integers of the body are bigints. */
interface Reply {
  readonly status: number
  readonly body: unknown
  /** Default: application/json. */
  readonly type?: string
}

/** The path is relative to the base address, which may have any prefix: `/pets`; empty elsewhere. */
export type Asked = Readonly<Record<'method' | 'path' | 'body', string>> &
  Readonly<{ query: URLSearchParams; headers: Headers }>

type Respond = (asked: Asked) => Reply

/** Changes a request, the response, or both. */
export type Defect = (asked: Asked, respond: Respond) => Reply

export const key = 'the-only-key'
const statuses = ['available', 'pending', 'sold']

/**
 * A server with these defects. Apart from them it follows the interface but not our decisions: it lists the newest animal
 * first, clamps limits, sets an absent status to available, and refuses unknown properties and exponents.
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
      const reply = respond({ method, path, query, headers, body: await request.text() })
      const { status, body, type = 'application/json' } = reply
      return new Response(body === undefined ? null : stringify(body), { status, headers: { 'Content-Type': type } })
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
  const parsed = readJson(body)
  if (!parsed.ok || !isJsonObject(parsed.value) || /:-?[\d.]+e/.test(body)) return error(400)
  const { name, categoryId: number, status, ...others } = parsed.value
  const [categoryId, chosen] = [readInt64(number), status ?? 'available']
  if (typeof name !== 'string' || categoryId === undefined || Object.keys(others).length > 0) return error(400)
  if (typeof chosen !== 'string' || !statuses.includes(chosen)) return error(400)
  const added = { id: BigInt(pets.length + 1), name, categoryId, status: chosen }
  pets.push(added)
  return { status: 201, body: added }
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
