// @ts-check
// Requests and responses. Nothing here uses the page.

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

/**
 * Relative to the page, which a proxy may serve under another path.
 * @param {string} [search]
 */
export const petsUrl = (search = '') => new URL(`v1/pets${search}`, document.baseURI)

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

const jsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

/**
 * Sends the category digit for digit, and anything else as text for the service to refuse. Invisible characters are escaped, so
 * that the curl line shows them.
 * @param {{ name: string, categoryId: string, status: string }} fields
 */
export function newPetBody({ name, categoryId, status }) {
  const typed = categoryId.trim()
  const parts = [`"name":${JSON.stringify(name)}`]
  if (typed) parts.push(`"categoryId":${jsonNumber.test(typed) ? typed : JSON.stringify(typed)}`)
  if (status) parts.push(`"status":"${status}"`)
  return `{${parts.join(',')}}`.replace(/[\x7f-\x9f\p{Cf}\u2028\u2029]/gu, char =>
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
  // The link may have the public address while this page was opened at another one: use only its query.
  const next = link === undefined ? {} : { next: petsUrl(new URL(link, document.baseURI).search) }
  return { status, body, message, requestId, ...next }
}

/**
 * Parses JSON with numbers as text, in any browser. Undefined if it is not JSON.
 * @param {string} text
 * @returns {unknown}
 */
export function parseExact(text) {
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
 * The problems of a message by field; '' for problems of no field. A "; " inside a quoted value separates nothing.
 * @param {string} message
 * @returns {Map<string, string>}
 */
export function problemsByField(message) {
  const problems = new Map()
  for (const problem of message.match(/(?:"[^"\\]*(?:\\.[^"\\]*)*"|;(?! )|[^;])+/g) ?? []) {
    const text = problem.trim()
    const [, field = ''] = /^(name|categoryId|status)\b/.exec(text) ?? []
    problems.set(field, problems.has(field) ? `${problems.get(field)}; ${text}` : text)
  }
  return problems
}

/**
 * The request as a shell command. The key is a variable, so that it is not shown.
 * @param {Call} call
 */
export function curlOf({ url, headers, body }) {
  const words = ['curl', '-H "Authorization: Bearer $PETSTORE_API_KEY"']
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${quoted(`${name}: ${value}`)}`)
  if (body !== undefined) words.push(`-d ${quoted(body)}`)
  return [...words, quoted(url.href)].join(' ')
}

/** @param {string} text */
const quoted = text => `'${text.replaceAll("'", `'\\''`)}'`
