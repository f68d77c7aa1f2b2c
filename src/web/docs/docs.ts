// The reference, made from the OpenAPI document. Its text is set as text, never as HTML.

import type { RawResponse } from '../../client/index.ts'
import * as site from '../site.ts'
import { byId, keyInput, onSubmit, resolveUrl, session, showProblem } from '../site.ts'
import type { Operation, Parameter, Schema } from './docs-samples.ts'
import { baseUrl, buildRequest, formatCurlSample, guideSamples, indentJson } from './docs-samples.ts'

type Child = string | Node
type Row = [name: string, facts: string, isRequired?: boolean, description?: string | undefined]

const copiedMs = 2_000

/** Receives the focus once there is a key. */
let afterKey = byId('leave')

/** Aborted when the key changes: a late response to one person is not shown to the next. */
let requests = new AbortController()

function el<T extends keyof HTMLElementTagNameMap>(
  tag: T,
  attributes: Readonly<Record<string, string>>,
  ...children: readonly (Child | readonly Child[])[]
) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children.flat())
  return element
}

/** Text with `code` in it. */
const markUp = (text = '') => text.split('`').map((part, index) => (index % 2 ? el('code', {}, part) : part))

const fold = (title: string, ...content: Node[]) =>
  el('details', { class: 'more' }, el('summary', {}, title), ...content)

const codeBlock = (label: string, text: Child) => el('pre', { tabindex: '0', role: 'group', 'aria-label': label }, text)

function terms(rows: readonly Row[]) {
  const items = rows.map(([name, facts, isRequired, text]) => {
    const title = el('dt', {}, el('code', {}, name), ' ', el('span', {}, facts))
    if (isRequired) title.append(' ', el('b', {}, 'required'))
    return el('div', {}, title, el('dd', {}, markUp(text)))
  })
  return el('dl', { class: 'terms' }, items)
}

function listFacts(schema: Schema): string {
  if (schema.oneOf) return schema.oneOf.map(listFacts).join(' | ')
  const { type, format, minimum, maximum, minLength, maxLength, enum: values, default: byDefault } = schema
  const facts = [values?.join(' | ') ?? (format === 'int64' ? '64-bit integer' : type)]
  if (maximum !== undefined) facts.push(`${minimum} to ${maximum}`)
  if (maxLength !== undefined) facts.push(`${minLength} to ${maxLength.toLocaleString('en')} characters`)
  if (byDefault !== undefined) facts.push(`default ${byDefault}`)
  return facts.join(' · ')
}

function buildProperties({ properties = {}, required = [] }: Schema) {
  const row = ([name, one]: [string, Schema]): Row => [name, listFacts(one), required.includes(name), one.description]
  return terms(Object.entries(properties).map(row))
}

const formatJson = (value: unknown) => JSON.stringify(value, null, 2)

function buildResponses({ responses }: Operation) {
  const rows = Object.entries(responses).map(([status, { description, 'x-error-codes': codes }]) => {
    const isOther = status === 'default'
    const intro = isOther ? 'A wrong address, or an error that a later version adds.' : description
    const lines = Object.entries(codes ?? {}).map(([code, { meaning, action }]) =>
      el('p', {}, el('code', {}, code), `: ${meaning} ${action}`),
    )
    if (isOther || !codes) lines.unshift(el('p', {}, markUp(intro)))
    const shown = isOther ? 'other' : status
    return el('div', {}, el('dt', { 'data-status': status.charAt(0) }, shown), el('dd', {}, lines))
  })
  const described = Object.values(responses)
  const headers = new Map(described.flatMap(({ headers }) => Object.entries(headers)))
  const { schema, example } = described[0]?.content?.['application/json'] ?? {}
  const body = schema && buildProperties(schema.items ?? schema)
  return el(
    'div',
    {},
    el('h3', {}, 'Responses'),
    el('dl', { class: 'responses' }, rows),
    body ? fold('Response body', body, codeBlock('Example', formatJson(example))) : [],
    fold('Response headers', terms([...headers].map(([name, { description }]) => [name, '', false, description]))),
  )
}

function buildInputs(operation: Operation) {
  const row = ({ name, in: place, schema, required = false, description }: Parameter): Row => {
    // The description of a header says how its characters count.
    const type = place === 'header' ? schema.type : listFacts(schema)
    return [name, `${place} · ${type}`, required, description]
  }
  const schema = operation.requestBody?.content['application/json'].schema
  const body = schema ? [el('h3', {}, 'Body'), buildProperties(schema)] : []
  return el('div', {}, el('h3', {}, 'Parameters'), terms(operation.parameters.map(row)), body)
}

function buildField(operationId: string, parameter: Parameter) {
  const { name, schema, required, example } = parameter
  const id = `${operationId}-${name}`
  const attributes = { id, autocomplete: 'off', spellcheck: 'false' }
  const options = schema.enum?.map(value => el('option', {}, value))
  const control = options
    ? el('select', attributes, el('option', { value: '' }, 'Not sent'), options)
    : el('input', { ...attributes, value: required ? String(example ?? '') : '' })
  const label = el('label', { for: id }, name, required ? '' : [' ', el('span', {}, 'optional')])
  return { parameter, control, box: el('div', {}, label, control) }
}

/** A form to send a request, its response, and a sample that follows the form. */
function buildTrial(operation: Operation) {
  const { operationId, summary, parameters, requestBody } = operation
  const fields = parameters.map(parameter => buildField(operationId, parameter))
  const bodyId = `${operationId}-body`
  const body = requestBody && el('textarea', { id: bodyId, rows: '5', spellcheck: 'false' })
  if (body) body.value = formatJson(requestBody.content['application/json'].example)
  const findControl = (name: string) => fields.find(({ parameter }) => parameter.name === name)?.control
  const cursor = findControl('cursor')
  const values = () => Object.fromEntries(fields.map(field => [field.parameter.name, field.control.value.trim()]))
  const request = () => buildRequest(operation, values(), body?.value)
  const curl = buildSample('curl', summary)
  const refresh = () => {
    curl.code.textContent = formatCurlSample(request())
  }
  const button = el('button', { type: 'submit' }, 'Send')
  const answer = el('div', { class: 'answer' }, el('div', { role: 'status' }))
  const form = el(
    'form',
    { novalidate: '', 'aria-label': `Try it: ${summary}` },
    el('div', { class: 'fields' }, ...fields.map(({ box }) => box)),
    body ? [el('label', { for: bodyId }, 'Body (JSON)'), body] : [],
    button,
  )
  form.addEventListener('input', ({ target }) => {
    // A cursor is for a list with the same status.
    if (cursor && target === findControl('status')) {
      cursor.value = ''
      answer.querySelector('button')?.remove()
    }
    refresh()
  })
  onSubmit(form, async () => {
    if (form.ariaBusy === 'true') return
    afterKey = button
    if (!session.key) {
      showProblem('key', 'Enter a key to send requests')
      return keyInput.focus()
    }
    const result = await send(request(), form, button)
    if (!result) return
    const isPaging = answer.contains(document.activeElement)
    showAnswer(answer, operation.method, result)
    const nextCursor = result.response instanceof Error ? null : result.response.headers.get('x-next-cursor')
    const next = el('button', { class: 'quiet', type: 'button' }, 'Next page')
    if (nextCursor) answer.append(next)
    if (isPaging) (nextCursor ? next : button).focus()
    next.addEventListener('click', () => {
      if (cursor) cursor.value = nextCursor ?? ''
      refresh()
      form.requestSubmit()
    })
  })
  refresh()
  return el('div', { class: 'trial' }, el('h3', {}, 'Try it'), form, answer, curl.box)
}

type Result = { readonly response: RawResponse | Error; readonly ms: number }

/** Shows that the form is busy meanwhile. Undefined if the key was changed before the response came. */
async function send(request: ReturnType<typeof buildRequest>, form: HTMLElement, button: HTMLElement) {
  form.ariaBusy = 'true'
  button.textContent = 'Sending…'
  const { signal } = requests
  const startMs = performance.now()
  const sent = site.newClient().request({ ...request, signal })
  const response = await sent.catch((error: Error) => error)
  const result: Result = { response, ms: Math.round(performance.now() - startMs) }
  button.textContent = 'Send'
  form.ariaBusy = 'false'
  return signal.aborted ? undefined : result
}

/** Returns the live region, which stays in the page so that screen readers announce its text. */
function emptyAnswer(answer: Element) {
  const state = answer.firstElementChild as HTMLElement
  while (answer.lastElementChild !== state) answer.lastElementChild?.remove()
  state.replaceChildren()
  return state
}

function showAnswer(answer: HTMLElement, method: string, { response, ms }: Result) {
  const state = emptyAnswer(answer)
  if (response instanceof Error) {
    const advice = method === 'get' ? '' : ' The change may be stored: list the animals before you send it again.'
    const unreached = `The service cannot be reached. Check your connection.${advice}`
    // A TypeError is about the request, which was not sent.
    const problem = response instanceof TypeError ? response.message : unreached
    state.replaceChildren(el('p', { class: 'problem' }, problem))
    return
  }
  const { status, statusText, headers, requestId, text } = response
  if (status === 0) return state.replaceChildren(el('p', { class: 'problem' }, site.redirected))
  state.replaceChildren(
    el('p', {}, el('b', { 'data-status': String(status).charAt(0) }, `${status} ${statusText}`.trim()), ` in ${ms} ms`),
    el('p', { class: 'hint' }, 'Request id ', el('code', {}, requestId ?? 'none')),
  )
  if (status === 401) state.append(el('p', { class: 'problem' }, 'Change the key at the top of this page.'))
  answer.append(
    status === 204 ? '' : codeBlock('Response body', indentJson(text)),
    fold('Headers of this response', terms([...headers].map(([name, value]) => [name, '', false, value]))),
  )
}

async function copy(code: HTMLElement, button: HTMLElement) {
  const label = button.ariaLabel
  try {
    await navigator.clipboard.writeText(code.textContent ?? '')
    button.textContent = 'Copied'
  } catch {
    // There is no clipboard on plain HTTP.
    getSelection()?.selectAllChildren(code)
    button.textContent = 'Selected'
  }
  button.ariaLabel = null
  setTimeout(() => {
    button.textContent = 'Copy'
    button.ariaLabel = label
  }, copiedMs)
}

function buildSample(language: string, summary: string) {
  const code = el('code', {})
  const label = `Copy ${summary} as ${language}`
  const button = el('button', { class: 'quiet', type: 'button', 'aria-label': label }, 'Copy')
  button.addEventListener('click', () => copy(code, button))
  const box = el('div', { class: 'sample' }, el('h3', {}, language), button, codeBlock(language, code))
  return { code, box }
}

function buildPanel(operation: Operation) {
  const { method, path, tags, operationId, summary, description, deprecated, 'x-stability': stability } = operation
  const id = `/${tags[0]}/${operationId}`
  const title = el('summary', {}, el('span', { class: 'badge', 'data-method': method }, method), el('h2', {}, summary))
  title.append(el(deprecated ? 's' : 'span', { class: 'path' }, path))
  const label = deprecated ? 'deprecated' : stability
  if (label) title.append(el('span', { class: 'badge label' }, label))
  const text = el('p', deprecated ? { class: 'warning' } : {}, markUp(description))
  const columns = el(
    'div',
    { class: 'columns' },
    buildInputs(operation),
    buildTrial(operation),
    buildResponses(operation),
  )
  const panel = el('details', { class: 'panel operation', id }, title, text, columns)
  title.addEventListener('click', () => {
    if (!panel.open) history.replaceState(null, '', `#${id}`)
    else if (location.hash === `#${id}`) history.replaceState(null, '', location.pathname + location.search)
  })
  return panel
}

function fillGuides() {
  for (const [id, text] of Object.entries(guideSamples())) {
    const { code, box } = buildSample(text.startsWith('curl') ? 'curl' : 'TypeScript', byId(id).textContent ?? '')
    code.textContent = text
    byId(id).parentElement?.append(box)
  }
}

const findAddressed = () => document.getElementById(location.hash.slice(1).replaceAll('%2F', '/'))

/** Goes to the guide or operation that the address names, as in `#/pets/getPet`. */
function goToAddressed() {
  const target = findAddressed()
  if (target?.matches('.operation')) {
    target.setAttribute('open', '')
    target.querySelector('summary')?.focus({ preventScroll: true })
  }
  target?.scrollIntoView()
}

/** A part of the document with its references replaced. They have no cycles. */
function replaceReferences<T>(part: T, whole: object): T {
  if (typeof part !== 'object' || part === null) return part
  const replace = (value: unknown) => replaceReferences(value, whole)
  if (Array.isArray(part)) return part.map(replace) as T
  if (!('$ref' in part)) return Object.fromEntries(Object.entries(part).map(([key, one]) => [key, replace(one)])) as T
  let found: unknown = whole
  for (const name of String(part.$ref).split('/').slice(1)) found = Reflect.get(Object(found), name)
  return replace(found) as T
}

async function load() {
  const loaded = await fetch(resolveUrl('openapi.json'))
    .then(response => response.json())
    .catch(() => undefined)
  if (!loaded?.paths) return byId('problem').append('The reference cannot be loaded. Reload this page.')
  const { info, servers, paths, components } = replaceReferences(loaded, loaded)
  byId('summary').append(info.summary)
  byId('description').append(...markUp(info.description))
  for (const { url, description } of servers) {
    const address = url.startsWith('/') ? baseUrl() : url
    byId('servers').append(el('p', {}, el('code', {}, address), ' ', el('span', {}, description)))
  }
  byId('authentication').append(...markUp(components.securitySchemes.bearerAuth.description))
  const operations = Object.entries<Record<string, Operation>>(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path })),
  )
  byId('operations').append(...operations.map(buildPanel))
  fillGuides()
  byId('about').hidden = byId('guides').hidden = false
  if (!findAddressed()?.matches('.operation')) byId('operations').firstElementChild?.setAttribute('open', '')
  goToAddressed()
}

function showKey() {
  byId('key-panel').hidden = false
  byId('key-form').hidden = session.key !== ''
  byId('key-known').hidden = session.key === ''
  byId('key-start').textContent = `${/^(pets_)?.{0,4}/.exec(session.key)?.[0]}…`
}

// Open operations and forms stay for the next key.
session.left = () => {
  session.key = ''
  requests.abort()
  requests = new AbortController()
  document.querySelectorAll('.answer').forEach(emptyAnswer)
  ;(byId('key-form') as HTMLFormElement).reset()
  showKey()
  keyInput.focus()
}
onSubmit(byId('key-form'), () => {
  if (!site.useTypedKey()) return
  site.acceptKey()
  showKey()
  afterKey.focus()
})
addEventListener('hashchange', goToAddressed)
showKey()
load()
