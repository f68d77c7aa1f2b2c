/** A response before it is serialized: the integers of the body are bigints. */
export interface Reply {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Asked {
  readonly method: string
  /** Relative to the base address: `/pets`, or `../openapi.json` next to it. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly body: string
}

/** One defect of the server. */
export interface Wrongness {
  /** Replaces the request. */
  readonly hear?: (asked: Asked) => Asked
  /** Replaces the response, unless it returns undefined. */
  readonly instead?: (asked: Asked) => Reply | undefined
  /** Changes the response. */
  readonly say?: (reply: Reply, asked: Asked) => Reply
  readonly prefix?: string
  readonly contentType?: (reply: Reply) => string
}

interface Kept {
  readonly id: bigint
  readonly name: string
  readonly categoryId: bigint
  readonly status: string
}

export interface WrongServer extends Disposable {
  readonly url: string
  readonly key: string
  /** The method of every request so far. */
  readonly methods: readonly string[]
}

const key = 'the-only-key'
const statuses = ['available', 'pending', 'sold']

/**
 * A server that follows the interface but not our decisions: it lists the newest animal first, clamps limits, sets an
 * absent status to available, and refuses unknown properties. A wrongness adds one defect.
 */
export function startWrongServer(wrongness: Wrongness = {}): WrongServer {
  const { prefix = '/v1', hear = same, instead, say = same, contentType = () => 'application/json' } = wrongness
  const kept = Array.from({ length: 25 }, (_, index) => seed(BigInt(index + 1)))
  const methods: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      methods.push(request.method)
      const asked = hear(await askedBy(request, prefix))
      const reply = say(instead?.(asked) ?? answerTo(asked, kept), asked)
      const headers = { 'Content-Type': contentType(reply), ...reply.headers }
      return new Response(jsonOf(reply.body), { status: reply.status, headers })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}${prefix}`,
    key,
    methods,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

function same<T>(value: T): T {
  return value
}

function seed(id: bigint): Kept {
  return { id, name: `animal ${id}`, categoryId: id, status: statuses[Number(id % 3n)] ?? '' }
}

async function askedBy(request: Request, prefix: string): Promise<Asked> {
  const { pathname, searchParams: query } = new URL(request.url)
  const path = pathname.startsWith(prefix) ? pathname.slice(prefix.length) : `..${pathname}`
  return { method: request.method, path, query, headers: request.headers, body: await request.text() }
}

function answerTo(asked: Asked, kept: Kept[]): Reply {
  const { method, path, headers } = asked
  const [, id] = /^\/pets(?:\/([^/]+))?$/.exec(path) ?? ['', '']
  if (id === '') return error(404)
  if (headers.get('authorization') !== `Bearer ${key}`) return error(401)
  if (method === 'GET') return id === undefined ? list(asked, kept) : get(id, kept)
  return method === 'POST' && id === undefined ? create(asked, kept) : error(404)
}

export function error(status: number): Reply {
  return { status, body: { code: `E${status}`, message: 'Sorry', status: BigInt(status) } }
}

function list({ query }: Asked, kept: readonly Kept[]): Reply {
  const limit = Math.min(Math.max(Math.trunc(Number(query.get('limit') || 20)) || 20, 1), 100)
  const status = query.get('status')
  const fitting = kept.filter(pet => !status || pet.status === status)
  return { status: 200, body: fitting.toReversed().slice(0, limit) }
}

function get(id: string, kept: readonly Kept[]): Reply {
  const body = kept.find(pet => String(pet.id) === id)
  return body ? { status: 200, body } : error(404)
}

function create({ body }: Asked, kept: Kept[]): Reply {
  const pet = readNewPet(body)
  if (!pet) return error(400)
  const added = { id: BigInt(kept.length + 1), ...pet }
  kept.push(added)
  return { status: 201, body: added }
}

function readNewPet(body: string): Omit<Kept, 'id'> | undefined {
  const sent = parsed(body)
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) return undefined
  const { name, categoryId, status, ...others } = sent as Readonly<Record<string, unknown>>
  const chosen = status ?? 'available'
  if (typeof name !== 'string' || typeof categoryId !== 'bigint' || typeof chosen !== 'string') return undefined
  if (categoryId !== BigInt.asIntN(64, categoryId) || !statuses.includes(chosen)) return undefined
  return Object.keys(others).length > 0 ? undefined : { name, categoryId, status: chosen }
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

function jsonOf(value: unknown): string {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${jsonOf(inner)}`).join(',')}}`
}

type JsonObject = Readonly<Record<string, unknown>>
type Change = (body: JsonObject, asked: Asked) => unknown

/** Changes every animal of a list. */
export function listing(change: (pet: JsonObject, index: number) => unknown): Wrongness {
  return changedList(pets => pets.map(change))
}

export function changedList(change: (pets: readonly JsonObject[], asked: Asked) => unknown): Wrongness {
  return {
    say: (reply, asked) => (Array.isArray(reply.body) ? { ...reply, body: change(reply.body, asked) } : reply),
  }
}

/** Changes the body of every response with this status, except lists. */
export function answering(status: number, change: Change): Wrongness {
  return {
    say: (reply, asked) =>
      reply.status === status && !Array.isArray(reply.body)
        ? { ...reply, body: change(reply.body as JsonObject, asked) }
        : reply,
  }
}

/** Responds with an Error of this status to the requests that match. */
export function refusing(status: number, when: (asked: Asked) => boolean): Wrongness {
  return { instead: asked => (when(asked) ? error(status) : undefined) }
}

/** Accepts requests without a key, or with a wrong one. */
export function trusting(method: string, path: RegExp, authorization: 'none' | 'wrong'): Wrongness {
  return {
    hear(asked) {
      const sent = asked.headers.get('authorization')
      const such = authorization === 'none' ? sent === null : sent?.includes('wrong') === true
      if (asked.method !== method || !path.test(asked.path) || !such) return asked
      return { ...asked, headers: new Headers({ authorization: 'Bearer the-only-key' }) }
    },
  }
}

/** Accepts a body that matches as a valid animal. */
export function taking(body: RegExp): Wrongness {
  return {
    hear: asked =>
      asked.method === 'POST' && body.test(asked.body) ? { ...asked, body: '{"name":"Rex","categoryId":1}' } : asked,
  }
}

export function adding(
  headers: Readonly<Record<string, string>>,
  when: (reply: Reply, asked: Asked) => boolean = () => true,
): Wrongness {
  return {
    say: (reply, asked) => (when(reply, asked) ? { ...reply, headers: { ...reply.headers, ...headers } } : reply),
  }
}

/** The same request with another query. */
export function rewriting(change: (query: URLSearchParams) => void): Wrongness {
  return {
    hear(asked) {
      const query = new URLSearchParams(asked.query)
      change(query)
      return { ...asked, query }
    },
  }
}
