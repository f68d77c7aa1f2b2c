import { readFileSync } from 'node:fs'
import { benchKey } from '../load/load.ts'

/** What our own server answers to the requests that the ceilings stand for. */
export interface OurAnswers {
  readonly list: FixedAnswer
  readonly get: FixedAnswer
  /** Our OpenAPI document. */
  readonly document: string
}

export interface FixedAnswer {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Every server makes these itself. */
const madeByServer = ['date', 'content-length', 'connection', 'keep-alive', 'transfer-encoding']

export async function captureAnswers(origin: string, petId: number): Promise<OurAnswers> {
  return {
    list: await fixedAnswer(`${origin}/v1/pets`),
    get: await fixedAnswer(`${origin}/v1/pets/${petId}`),
    document: (await fixedAnswer(`${origin}/openapi.json`)).body,
  }
}

export async function fixedAnswer(url: string): Promise<FixedAnswer> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${benchKey}` } })
  if (!response.ok) throw new Error(`GET ${url} gave ${response.status}`)
  const headers = [...response.headers].filter(([name]) => !madeByServer.includes(name))
  return { headers: Object.fromEntries(headers), body: await response.text() }
}

export function readAnswers(file: string): OurAnswers {
  return JSON.parse(readFileSync(file, 'utf8'))
}
