/** What a scripted server does with one request. */
export type Step = Response | ((request: Request) => Response | Promise<Response>)

/** The path has its query. */
type Asked = Readonly<Record<'method' | 'path' | 'body', string>> & { readonly headers: Headers }

/** A server that is none of ours: it answers each request with the next step of a script, the last one again and again. */
export function startScriptedServer(...steps: readonly Step[]) {
  /** Every request so far. */
  const requests: Asked[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    development: false,
    async fetch(request) {
      const { method, url, headers } = request
      const step = steps[Math.min(requests.length, steps.length - 1)]
      const { pathname, search } = new URL(url)
      requests.push({ method, path: pathname + search, headers, body: await request.text() })
      if (!step) throw new Error('The script is empty')
      return step instanceof Response ? (step.clone() as Response) : await step(request)
    },
  })
  const origin = `http://127.0.0.1:${server.port}`
  return { url: `${origin}/v1`, origin, requests, [Symbol.asyncDispose]: () => server.stop(true) }
}

/** An Error as a pet store sends it. */
export function errorAnswer(status: number, code: string, headers: Record<string, string> = {}): Response {
  return Response.json({ code, message: `This is ${code}`, status }, { status, headers })
}
