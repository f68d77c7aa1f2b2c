import { errorToJson, type ProblemCode, problems } from './problem.ts'

/** What an operation says; the pipeline makes a Response of it, with the headers that all of them share. */
export interface Answer {
  readonly status: number
  /** JSON text, unless the headers say otherwise. */
  readonly body: string | Uint8Array | null
  readonly headers?: Readonly<Record<string, string>>
}

export function problem(code: ProblemCode, message: string, headers?: Answer['headers']): Answer {
  const answer = { status: problems[code].status, body: errorToJson(code, message) }
  return headers ? { ...answer, headers } : answer
}

export function withHeaders(answer: Answer, headers: Readonly<Record<string, string>>): Answer {
  return { ...answer, headers: { ...answer.headers, ...headers } }
}
