// Requests, samples of them, and responses as text. Nothing here changes the page.

import type { RawRequest } from '../../client/index.ts'
import { resolveUrl } from '../site.ts'

// The parts of the OpenAPI document that the page uses, with references replaced.

type Texts<Name extends string> = Readonly<Record<Name, string>>
type Limits = Readonly<Record<'minimum' | 'maximum' | 'minLength' | 'maxLength', number>>

export interface Schema extends Partial<Texts<'type' | 'format' | 'description'> & Limits> {
  readonly default?: unknown
  readonly enum?: readonly string[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

export interface Parameter extends Texts<'name' | 'in' | 'description'> {
  readonly schema: Schema
  readonly required?: boolean
  readonly example?: unknown
}

type Body = {
  readonly content: { readonly 'application/json': { readonly schema: Schema; readonly example: unknown } }
}
interface Described extends Partial<Body>, Texts<'description'> {
  readonly headers: Readonly<Record<string, Texts<'description'>>>
  /** Of an error. */
  readonly 'x-error-codes'?: Readonly<Record<string, Texts<'meaning' | 'action'>>>
}

export interface Operation extends Texts<'method' | 'path' | 'operationId' | 'summary' | 'description'> {
  readonly tags: readonly string[]
  readonly deprecated?: boolean
  readonly 'x-stability'?: string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: Body
  readonly responses: Readonly<Record<string, Described>>
}

/** The server that the page came from. */
export const baseUrl = () => resolveUrl('v1').href

/** Empty parameters are not sent. */
export function buildRequest({ method, path, parameters }: Operation, values: Values, body?: string) {
  const query: Record<string, string> = {}
  const headers: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' }
  let filled = path
  for (const { name, in: place } of parameters) {
    const value = values[name]
    if (!value) continue
    if (place === 'query') query[name] = value
    else if (place === 'header') headers[name] = value
    else filled = filled.replace(`{${name}}`, encodeURIComponent(value))
  }
  return { method: method.toUpperCase(), path: filled, query, headers, body } satisfies RawRequest
}

/** The texts of the parameters by name. */
export type Values = Readonly<Record<string, string>>

export function formatCurlSample({ method, path, query, headers, body }: ReturnType<typeof buildRequest>) {
  const search = String(new URLSearchParams(query))
  const command = formatCurl(baseUrl() + path + (search && `?${search}`), headers, body)
  // curl itself chooses GET, or POST for a body.
  return /^(GET|POST)$/.test(method) ? command : `${command} \\\n  --request ${method}`
}

const quoteForShell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** A shell command. The key is a variable, so that it is not shown. */
function formatCurl(url: string, headers: Readonly<Record<string, string>>, body?: string) {
  const words = [`curl ${quoteForShell(url)}`, '-H "Authorization: Bearer $PETSTORE_API_KEY"']
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${quoteForShell(`${name}: ${value}`)}`)
  // Plain --data would read a file if the body starts with @.
  if (body !== undefined) words.push(`--data-raw ${quoteForShell(body)}`)
  return words.join(' \\\n  ')
}

// TypeScript has no type for it yet.
const { rawJSON } = JSON as unknown as { rawJSON(text?: string): object }

/** JSON with line breaks, its numbers digit for digit. Any other text as it came; in old browsers, any text. */
export function indentJson(text: string) {
  const keepDigits = (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' ? rawJSON(context?.source) : value
  try {
    return JSON.stringify(JSON.parse(text, keepDigits), null, 2)
  } catch {
    return text
  }
}

/** A sample for each guide, by the id of its heading. */
export const guideSamples = (): Values => ({
  paging: `${clientStart()}for await (const pet of client.pets.list({ limit: 100 })) {
  console.log(pet.id, pet.name)
}`,
  retries: petsCurl(
    '--include --retry 5 --retry-all-errors',
    { 'Content-Type': 'application/json', 'Idempotency-Key': '6f1c0a6e-5d3b-4b67-9d53-0a6f2f0e8f11' },
    '{"name":"Rex","categoryId":7}',
  ),
  errors: `${clientStart('PetstoreError')}try {
  await client.pets.list({ cursor: 'mistyped' }).page()
} catch (error) {
  if (!(error instanceof PetstoreError)) throw error
  console.log(error.code, error.message, error.requestId)
}`,
  'rate-limits': petsCurl('--head'),
  'exact-integers': `${clientStart('stringify')}const { pets } = await client.pets.list().page()
for (const pet of pets) console.log(pet.categoryId, stringify(pet))`,
})

const petsCurl = (options: string, headers: Values = {}, body?: string) =>
  `${formatCurl(`${baseUrl()}/pets`, headers, body)} \\\n  ${options}`

const clientStart = (more = '') => `import { PetstoreClient${more && `, ${more}`} } from 'petstore-client'

const client = new PetstoreClient({
  baseUrl: '${baseUrl()}',
  apiKey: process.env['PETSTORE_API_KEY'] ?? '',
})

`
