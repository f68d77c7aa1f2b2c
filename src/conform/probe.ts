import { fail, skip } from './check.ts'

/** The server that is checked, and how. */
export interface Target {
  /** Without a slash at the end: `https://pets.example.com/v1`. */
  readonly baseUrl: string
  readonly key: string
  /** Nothing but GET and HEAD is sent. */
  readonly readOnly: boolean
}

interface Ask {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer>
  /** The whole Authorization header; null for none, absent for the key. */
  readonly authorization?: string | null
}

export interface Answer {
  /** What was asked, with the beginning of what was sent: `GET /pets?limit=0`, `POST /pets {"name":7}`. */
  readonly asked: string
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface Probe extends Target {
  /** Asks for a path under the base address. Ends the check where no answer comes. */
  send(path: string, ask?: Ask): Promise<Answer>
  /** POST /pets with a JSON body. */
  post(body: string | undefined, ask?: Ask): Promise<Answer>
}

const answerMs = 10_000
const sentCharsShown = 100

/** A server may limit rates: we wait as it says, but not for ever. */
const rateLimitedMax = 5
const retryAfterSecondsMax = 10

export function createProbe(target: Target): Probe {
  async function send(path: string, ask: Ask = {}): Promise<Answer> {
    const { method = 'GET' } = ask
    // A check that writes does not come this far: here one that reads wants to add what it would read.
    if (target.readOnly && method !== 'GET' && method !== 'HEAD') {
      skip('the catalogue holds too few animals for it, and this run only reads')
    }
    for (let attempt = 1; ; attempt++) {
      const answer = await request(target, path, ask)
      const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN)
      const wait = answer.status === 429 && attempt < rateLimitedMax && seconds <= retryAfterSecondsMax
      if (!wait) return answer
      await Bun.sleep(seconds * 1_000)
    }
  }
  return {
    ...target,
    send,
    post(body, { headers, ...ask } = {}) {
      const json = { 'Content-Type': 'application/json', ...headers }
      return send('/pets', { method: 'POST', ...(body !== undefined && { body }), ...ask, headers: json })
    },
  }
}

async function request({ baseUrl, key }: Target, path: string, ask: Ask): Promise<Answer> {
  const { method = 'GET', headers = {}, body, authorization = `Bearer ${key}` } = ask
  const credential = authorization === null ? {} : { Authorization: authorization }
  const sent = typeof body === 'string' ? ` ${body.slice(0, sentCharsShown).trimEnd()}` : ''
  const asked = `${method} ${path}${sent}`
  try {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { ...credential, ...headers },
      ...(body !== undefined && { body }),
      // Elsewhere is another server, and the key is not for it.
      redirect: 'manual',
      signal: AbortSignal.timeout(answerMs),
    })
    return { asked, status: response.status, headers: response.headers, text: await response.text() }
  } catch (error) {
    return fail(`an answer to ${asked} within ${answerMs / 1_000} s`, `none (${causeOf(error)})`)
  }
}

function causeOf(error: unknown): string {
  const { code, name } = error as { code?: string | number; name?: string }
  return name === 'TimeoutError' ? 'time-out' : String(code ?? name)
}
