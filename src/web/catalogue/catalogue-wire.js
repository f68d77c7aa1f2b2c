// @ts-check
// What goes over the wire and what comes back. Nothing here knows the page.

/**
 * Integers are their own digits: a number would round those beyond 2^53.
 * @typedef {{ id: string, name: string, categoryId: string, status?: string }} Pet
 */

/** @typedef {{ method: string, url: URL, headers: Record<string, string>, body?: string }} Call */

/**
 * Status 0: nobody answered.
 * @typedef {{ status: number, body: unknown, message: string, requestId: string, next?: URL }} Answer
 */

const waitMs = 30_000

/**
 * Beside the page, wherever a proxy put it.
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
 * @param {string} once
 * @returns {Call}
 */
export function createCall(body, once) {
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': once }
  return { method: 'POST', url: petsUrl(), headers, body }
}

const jsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

/**
 * The category goes out digit for digit; what is no number goes out as text, and the service says what it expects.
 * Invisible characters are escaped, so that the curl line shows what it sends.
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

/** A name for one creation. `crypto.randomUUID` is missing where the page came over plain HTTP. */
export function newOnce() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte =>
    byte.toString(16).padStart(2, '0'),
  ).join('')
}

/**
 * @param {Call} call
 * @param {string} key
 * @returns {Promise<Answer>}
 */
export async function send({ method, url, headers, body }, key) {
  const signal = AbortSignal.timeout(waitMs)
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
  // The link may name the public address while this page was opened by another one: only its query counts.
  const next = link === undefined ? {} : { next: petsUrl(new URL(link, document.baseURI).search) }
  return { status, body, message, requestId, ...next }
}

/**
 * JSON whose numbers become their own text, in any browser; undefined where it is no JSON.
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
 * The problems of a message by the field that each names; '' for those that name none.
 * A "; " inside of a quoted value parts nothing.
 * @param {string} message
 * @returns {Map<string, string>}
 */
export function problemsByField(message) {
  const problems = new Map()
  for (const problem of message.match(/(?:"[^"\\]*(?:\\.[^"\\]*)*"|;(?! )|[^;])+/g) ?? []) {
    const text = problem.trim()
    const [, field = ''] = /^(?:Cannot read )?(name|categoryId|status)\b/.exec(text) ?? []
    problems.set(field, problems.has(field) ? `${problems.get(field)}; ${text}` : text)
  }
  return problems
}

/**
 * The same request for a shell. The key is a variable: it is never shown.
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
