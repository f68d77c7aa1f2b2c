// @ts-check
// Requests, and samples of them. Nothing here changes the page.

import { shellQuoted, urlOf } from '../site.js'

// The parts of the OpenAPI document that the page uses, with references replaced.
/** @typedef {{ [keyword: string]: any, type?: string, enum?: string[], description?: string }} Schema */
/** @typedef {{ name: string, in: string, description: string, schema: Schema, required?: boolean, example?: unknown }} Parameter */
/** @typedef {{ 'application/json': { schema: Schema, example: unknown } }} Content */
/** @typedef {{ description: string, headers: Record<string, { description: string }>, content: Content }} Described */
/** @typedef {{ operationId: string, tags: string[], summary: string, description: string, deprecated?: boolean }} Texts */
/** @typedef {{ parameters: Parameter[], requestBody?: { content: Content }, responses: Record<string, Described> }} Shapes */
/** @typedef {Texts & Shapes & { method: string, path: string }} Operation */

/** @typedef {{ method: string, url: URL, headers: Record<string, string>, body?: string }} Call */

const timeoutMs = 30_000

/** The server that the page came from. */
export const baseUrl = () => urlOf('v1').href

/**
 * @param {Operation} operation
 * @param {Record<string, string>} values of the parameters; one that is '' is not sent
 * @param {string} [body]
 * @returns {Call}
 */
export function callOf({ method, path, parameters }, values, body) {
  const query = new URLSearchParams()
  /** @type {Record<string, string>} */
  const headers = body === undefined ? {} : { 'Content-Type': 'application/json' }
  let filled = path
  for (const { name, in: place } of parameters) {
    const value = values[name]
    if (!value) continue
    if (place === 'query') query.set(name, value)
    else if (place === 'header') headers[name] = value
    else filled = filled.replace(`{${name}}`, encodeURIComponent(value))
  }
  const url = new URL(baseUrl() + filled)
  url.search = String(query)
  return body === undefined ? { method, url, headers } : { method, url, headers, body }
}

/**
 * Undefined if there is no response.
 * @param {Call} call
 * @param {string} key
 */
export async function send({ url, headers, ...init }, key) {
  const start = performance.now()
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetch(url, { ...init, headers: { ...headers, Authorization: `Bearer ${key}` }, signal })
    const text = indented(await response.text())
    return { response, text, ms: Math.round(performance.now() - start) }
  } catch {
    return undefined
  }
}

/**
 * Indented JSON with exact numbers. The same text if it is not JSON, or the browser lacks JSON.rawJSON.
 * @param {string} text
 */
function indented(text) {
  /** @type {((digits: string) => unknown) | undefined} */
  const rawJson = Reflect.get(JSON, 'rawJSON')
  if (!rawJson) return text
  /** @type {(key: string, value: unknown, context?: { source: string }) => unknown} */
  const keepDigits = (_key, value, context) => (typeof value === 'number' && context ? rawJson(context.source) : value)
  try {
    return JSON.stringify(JSON.parse(text, keepDigits), null, 2)
  } catch {
    return text
  }
}

/**
 * A shell command. The key is a variable, so that it is not shown.
 * @param {Call} call
 */
export function curlOf({ url, headers, body }) {
  const words = [`curl ${shellQuoted(url.href)}`, '-H "Authorization: Bearer $PETSTORE_API_KEY"']
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${shellQuoted(`${name}: ${value}`)}`)
  // Plain --data would read a file if the body starts with @.
  if (body !== undefined) words.push(`--data-raw ${shellQuoted(body)}`)
  return words.join(' \\\n  ')
}

/**
 * A program that uses the typed client, or '' for an operation that the client lacks.
 * @param {string} operationId
 * @param {Record<string, string>} values of the parameters
 * @param {string} [body]
 */
export function typescriptOf(operationId, values, body = '') {
  const { limit, status, cursor, petId = '', Prefer, 'Idempotency-Key': idempotencyKey } = values
  const preference = { headers: Prefer && `{ Prefer: ${literal(Prefer)} }` }
  /** @type {Record<string, () => string>} */
  const calls = {
    listPets: () =>
      `const { pets } = await client.pets.list(${objectOf({
        limit: limit && String(BigInt(limit)),
        status: status && literal(status),
        cursor: cursor && literal(cursor),
        ...preference,
      })}).page()\nconsole.log(pets)`,
    createPet: () => {
      const options = objectOf({ idempotencyKey: idempotencyKey && literal(idempotencyKey), ...preference })
      return `const pet = await client.pets.create(${newPetOf(body)}${options && `, ${options}`})\nconsole.log(pet)`
    },
    getPet: () => {
      const options = objectOf(preference)
      return `const pet = await client.pets.get(${BigInt(petId)}n${options && `, ${options}`})\nconsole.log(pet)`
    },
  }
  const call = calls[operationId]
  return call ? clientStart() + call() : ''
}

const clientStart = () => `import { PetstoreClient } from 'petstore-client'

const client = new PetstoreClient({
  baseUrl: ${literal(baseUrl())},
  apiKey: process.env['PETSTORE_API_KEY'] ?? '',
})

`

/** @param {string} text */
function literal(text) {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}

/**
 * `{ limit: 2 }`, or '' if no property has a text.
 * @param {Record<string, string | undefined>} properties
 */
function objectOf(properties) {
  const set = Object.entries(properties).flatMap(([name, text]) => (text ? `${name}: ${text}` : []))
  return set.length === 0 ? '' : `{ ${set.join(', ')} }`
}

/**
 * JSON as TypeScript, with integers as bigint. A number with a fraction or an exponent stays as it is.
 * @param {string} json
 */
function newPetOf(json) {
  try {
    JSON.parse(json)
  } catch {
    return '/* The body is not valid JSON. */'
  }
  return json.replace(/("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*/g, (token, string, colon = '') => {
    if (!string) return /^-?\d+$/.test(token) ? `${token}n` : token
    const text = JSON.parse(string)
    return (colon && /^[a-z]\w*$/i.test(text) ? text : literal(text)) + colon
  })
}
