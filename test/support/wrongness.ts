import { type Asked, error, type Reply, type Wrongness } from './wrong-server.ts'

type JsonObject = Readonly<Record<string, unknown>>
type Change = (body: JsonObject, asked: Asked) => unknown

/** What every animal is like in a list. */
export function listing(change: (pet: JsonObject, index: number) => unknown): Wrongness {
  return changedList(pets => pets.map(change))
}

export function changedList(change: (pets: readonly JsonObject[], asked: Asked) => unknown): Wrongness {
  return {
    say: (reply, asked) =>
      Array.isArray(reply.body) ? { ...reply, body: change(reply.body, asked) } : reply,
  }
}

/** What the body of a status is like; that of a list, which is no object, stays as it is. */
export function answering(status: number, change: Change): Wrongness {
  return {
    say: (reply, asked) =>
      reply.status === status && !Array.isArray(reply.body)
        ? { ...reply, body: change(reply.body as JsonObject, asked) }
        : reply,
  }
}

/** Answers this status with an Error, where the request is such a one. */
export function refusing(status: number, when: (asked: Asked) => boolean): Wrongness {
  return { instead: asked => (when(asked) ? error(status) : undefined) }
}

/** Answers as if the key had been sent. */
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

/** Takes a body like this for an animal. */
export function taking(body: RegExp): Wrongness {
  return {
    hear: asked =>
      asked.method === 'POST' && body.test(asked.body)
        ? { ...asked, body: '{"name":"Rex","categoryId":1}' }
        : asked,
  }
}

export function adding(
  headers: Readonly<Record<string, string>>,
  when: (reply: Reply, asked: Asked) => boolean = () => true,
): Wrongness {
  return {
    say: (reply, asked) =>
      when(reply, asked) ? { ...reply, headers: { ...reply.headers, ...headers } } : reply,
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
