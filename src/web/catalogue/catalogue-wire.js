// @ts-check
// Requests, responses and the rules for a new animal. Nothing here changes the page.

import { shellQuoted, urlOf } from '../site.js'

/**
 * Integers are text: a number would round them beyond 2^53.
 * @typedef {{ id: string, name: string, categoryId: string, status?: string }} Pet
 */

/** @typedef {{ method: string, url: URL, headers: Record<string, string>, body?: string }} Call */

/**
 * Status 0: no response.
 * @typedef {{ status: number, body: unknown, message: string, requestId: string, next?: URL }} Answer
 */

const timeoutMs = 30_000

/** @param {Record<string, string>} [query] empty values are left out */
export function petsUrl(query = {}) {
  const url = urlOf('v1/pets')
  url.search = String(new URLSearchParams(Object.entries(query).filter(([, value]) => value)))
  return url
}

/**
 * @param {URL} url
 * @returns {Call}
 */
export const getCall = url => ({ method: 'GET', url, headers: {} })

/**
 * @param {string} body
 * @param {string} idempotencyKey
 * @returns {Call}
 */
export function createCall(body, idempotencyKey) {
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey }
  return { method: 'POST', url: petsUrl(), headers, body }
}

/** @param {string} name */
export function nameProblem(name) {
  if (!name.trim()) return 'Enter a name'
  return [...name].length > 1_000 ? 'The name is too long (1,000 characters at most)' : ''
}

/** @param {string} categoryId */
export function categoryProblem(categoryId) {
  const typed = categoryId.trim()
  if (!typed) return 'Enter a category number'
  if (!/^-?\d+$/.test(typed)) return 'Use digits only'
  const number = BigInt(typed)
  if (BigInt.asIntN(64, number) === number) return ''
  return `The number is too ${number < 0n ? 'small' : 'large'}`
}

/**
 * Invisible characters are escaped, so that the curl line shows them.
 * @param {{ name: string, categoryId: string, status: string }} fields without problems
 */
export function newPetBody({ name, categoryId, status }) {
  const rest = status && `,"status":"${status}"`
  const body = `{"name":${JSON.stringify(name)},"categoryId":${BigInt(categoryId)}${rest}}`
  return body.replace(/[\x7f-\x9f\p{Cf}\u2028\u2029]/gu, char =>
    char
      .split('')
      .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}

/** `crypto.randomUUID` is missing on plain HTTP. */
export function newIdempotencyKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * @param {Call} call
 * @param {string} key
 * @returns {Promise<Answer>}
 */
export async function send({ method, url, headers, body }, key) {
  const signal = AbortSignal.timeout(timeoutMs)
  const init = { method, headers: { ...headers, Authorization: `Bearer ${key}` }, signal }
  try {
    const response = await fetch(url, body === undefined ? init : { ...init, body })
    return answerOf(response, await response.text())
  } catch {
    return { status: 0, body: undefined, message: '', requestId: '' }
  }
}

/**
 * @param {Response} response
 * @param {string} text
 * @returns {Answer}
 */
function answerOf({ status, headers }, text) {
  const requestId = headers.get('x-request-id') ?? ''
  const body = parseExact(text)
  const said = /** @type {{ message?: unknown } | undefined} */ (body)?.message
  const message = typeof said === 'string' ? said : ''
  const [, link] = /<([^>]*)>[^,]*\brel="?next\b/.exec(headers.get('link') ?? '') ?? []
  if (link === undefined) return { status, body, message, requestId }
  // The link may have the public address while this page was opened at another one: use only its query.
  const query = Object.fromEntries(urlOf(link).searchParams)
  return { status, body, message, requestId, next: petsUrl(query) }
}

/**
 * Parses JSON with numbers as text, in any browser. Undefined if it is not JSON.
 * @param {string} text
 * @returns {unknown}
 */
function parseExact(text) {
  const quoted = text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g, token =>
    token.startsWith('"') ? token : `"${token}"`,
  )
  try {
    return JSON.parse(quoted)
  } catch {
    return undefined
  }
}

/**
 * The request as a shell command. The key is a variable, so that it is not shown.
 * @param {Call} call
 */
export function curlOf({ url, headers, body }) {
  const words = ['curl', '-H "Authorization: Bearer $PETSTORE_API_KEY"']
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${shellQuoted(`${name}: ${value}`)}`)
  if (body !== undefined) words.push(`--data-raw ${shellQuoted(body)}`)
  return [...words, shellQuoted(url.href)].join(' ')
}
