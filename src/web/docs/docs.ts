// The reference, made from the OpenAPI document. Its text is set as text, never as HTML.

import type { PetstoreClient } from '../../client/index.ts'
import * as site from '../site.ts'
import { byId, copyTemplate, find, onSubmit, resolveUrl, session } from '../site.ts'

// The parts of the document that the page shows, with references replaced.

type Texts<Name extends string> = Readonly<Record<Name, string>>
type Limits = Readonly<Record<'minimum' | 'maximum' | 'minLength' | 'maxLength', number>>

interface Schema extends Partial<Texts<'type' | 'format' | 'description'> & Limits> {
  readonly default?: unknown
  readonly enum?: readonly string[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

interface Parameter extends Texts<'name' | 'in' | 'description'> {
  readonly schema: Schema
  readonly required?: boolean
  readonly example?: unknown
}

interface Body {
  readonly content: { readonly 'application/json': { readonly schema: Schema; readonly example: unknown } }
}

interface Described extends Partial<Body>, Texts<'description'> {
  readonly headers: Readonly<Record<string, Texts<'description'>>>
}

interface Operation extends Texts<'method' | 'path' | 'operationId' | 'summary' | 'description'> {
  readonly tags: readonly string[]
  readonly deprecated?: boolean
  readonly 'x-stability'?: string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: Body
  readonly responses: Readonly<Record<string, Described>>
}

/** The server that the page came from. */
const baseUrl = resolveUrl('v1').href

/** Receives the focus once there is a key. */
let afterKey = byId('leave')

function el<T extends keyof HTMLElementTagNameMap>(
  tag: T,
  attributes: Readonly<Record<string, string>>,
  ...children: readonly (string | Node)[]
) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

/** Text with `code` in it. */
const markUp = (text: string) => text.split('`').map((part, index) => (index % 2 ? el('code', {}, part) : part))

const formatJson = (value: unknown) => JSON.stringify(value, null, 2)

function buildTerm(name: string, facts: string, text = '', isRequired = false) {
  const title = el('dt', {}, el('code', {}, name), ' ', el('span', {}, facts))
  if (isRequired) title.append(' ', el('b', {}, 'required'))
  return el('div', {}, title, el('dd', {}, ...markUp(text)))
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

/** The properties of a body, or of the items of a list. */
function buildProperties({ items, properties = items?.properties, required = items?.required }: Schema) {
  const rows = Object.entries(properties ?? {})
  return rows.map(([name, one]) => buildTerm(name, listFacts(one), one.description, required?.includes(name)))
}

function buildParameter({ name, in: place, schema, required, description }: Parameter) {
  // The description of a header says how its characters count.
  const type = place === 'header' ? schema.type : listFacts(schema)
  return buildTerm(name, `${place} · ${type}`, description, required)
}

function buildResponse([status, { description }]: [string, Described]) {
  const title = el('dt', { class: status < '3' ? 'done' : 'problem' }, status === 'default' ? 'other' : status)
  return el('div', {}, title, el('dd', {}, ...markUp(description)))
}

function buildField(operationId: string, { name, schema, required, example }: Parameter) {
  const id = `${operationId}-${name}`
  const attributes = { id, name, autocomplete: 'off', spellcheck: 'false' }
  const options = schema.enum?.map(value => el('option', {}, value))
  const control = options
    ? el('select', attributes, el('option', { value: '' }, 'Not sent'), ...options)
    : el('input', { ...attributes, value: required ? String(example ?? '') : '' })
  const label = el('label', { for: id }, name, ' ', el('span', {}, required ? '' : 'optional'))
  return el('div', {}, label, control)
}

/** The request that the form describes. Empty parameters are not sent. */
function readRequest({ method, path, parameters }: Operation, form: HTMLFormElement) {
  const values = new FormData(form)
  const body = form.querySelector('textarea')?.value
  const query: Record<string, string> = {}
  const headers: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' }
  let filled = path
  for (const { name, in: place } of parameters) {
    const value = String(values.get(name)).trim()
    if (!value) continue
    if (place === 'query') query[name] = value
    else if (place === 'header') headers[name] = value
    else filled = filled.replace(`{${name}}`, encodeURIComponent(value))
  }
  return { method: method.toUpperCase(), path: filled, query, headers, body }
}

const quoteForShell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** A shell command. The key is a variable, so that it is not shown. */
function formatCurl({ method, path, query, headers, body }: ReturnType<typeof readRequest>) {
  const search = String(new URLSearchParams(query))
  const url = baseUrl + path + (search && `?${search}`)
  const words = [`curl ${quoteForShell(url)}`, '-H "Authorization: Bearer $PETSTORE_API_KEY"']
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${quoteForShell(`${name}: ${value}`)}`)
  // Plain --data would read a file if the body starts with @.
  if (body !== undefined) words.push(`--data-raw ${quoteForShell(body)}`)
  // curl itself chooses GET, or POST for a body.
  if (!/^(GET|POST)$/.test(method)) words.push(`--request ${method}`)
  return words.join(' \\\n  ')
}

// TypeScript has no type for it yet.
const { rawJSON } = JSON as unknown as { rawJSON(text?: string): object }

/** JSON with line breaks, its numbers digit for digit. Any other text as it came; in old browsers, any text. */
function indentJson(text: string) {
  const keepDigits = (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' ? rawJSON(context?.source) : value
  try {
    return formatJson(JSON.parse(text, keepDigits))
  } catch {
    return text
  }
}

/** The form sends a request and shows its response; the sample follows the form. */
function prepareTrial(panel: HTMLElement, operation: Operation) {
  const form = find(panel, 'form') as HTMLFormElement
  const send = find(form, 'button')
  const next = find(panel, '.next')
  const sample = find(panel, '.sample code')
  const copy = find(panel, '.sample button')
  const refresh = () => {
    sample.textContent = formatCurl(readRequest(operation, form))
    copy.textContent = 'Copy'
  }
  refresh()
  form.addEventListener('input', refresh)
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(sample.textContent ?? '')
      copy.textContent = 'Copied'
    } catch {
      // There is no clipboard on plain HTTP.
      getSelection()?.selectAllChildren(sample)
      copy.textContent = 'Selected'
    }
  })
  onSubmit(form, async () => {
    if (form.ariaBusy === 'true') return
    afterKey = send
    const { key } = session
    if (!key) return site.askForKey('Enter a key to send requests')
    form.ariaBusy = 'true'
    const sent = site.newClient().request(readRequest(operation, form))
    const response = await sent.catch((error: Error) => error)
    form.ariaBusy = 'false'
    // A late response to one person is not shown to the next.
    if (key !== session.key) return
    const isPaging = document.activeElement === next
    showResponse(panel, response, operation.method)
    if (isPaging && next.hidden) send.focus()
  })
  next.addEventListener('click', () => {
    site.inputById(`${operation.operationId}-cursor`).value = next.dataset['cursor'] ?? ''
    refresh()
    form.requestSubmit()
  })
}

type Received = Awaited<ReturnType<PetstoreClient['request']>>

function showResponse(panel: HTMLElement, response: Received | Error, method: string) {
  clearResponse(panel)
  const state = find(panel, '.state')
  if (response instanceof Error) {
    const advice = method === 'get' ? '' : ' The change may be stored: list the animals before you send it again.'
    const unreached = `The service cannot be reached. Check your connection.${advice}`
    // A TypeError is about the request, which was not sent.
    return state.append(response instanceof TypeError ? response.message : unreached)
  }
  const { status, headers, text } = response
  if (status === 0) return state.append(site.redirected)
  const id = el('code', {}, headers.get('x-request-id') ?? 'none')
  state.append(el('b', { class: status < 300 ? 'done' : 'problem' }, String(status)), ' · Request id ', id)
  find(panel, '.content').textContent = indentJson(text)
  // It scrolls, also with the keyboard.
  find(panel, '.content').tabIndex = 0
  find(panel, '.headers').textContent = [...headers].map(header => header.join(': ')).join('\n')
  const cursor = headers.get('x-next-cursor')
  const next = find(panel, '.next')
  next.hidden = cursor === null
  next.dataset['cursor'] = cursor ?? ''
}

function clearResponse(panel: HTMLElement) {
  for (const part of panel.querySelectorAll('.state, .content, .headers')) part.replaceChildren()
  find(panel, '.next').hidden = true
}

function buildPanel(operation: Operation) {
  const { method, path, operationId, summary, description, deprecated, parameters, requestBody, responses } = operation
  const panel = copyTemplate('operation') as HTMLDetailsElement
  panel.id = `/${operation.tags[0]}/${operationId}`
  const fill = (selector: string, ...content: readonly (string | Node)[]) =>
    find(panel, selector).replaceChildren(...content)
  find(panel, '.method').dataset['method'] = method
  fill('.method', method.toUpperCase())
  fill('h2', summary)
  fill('.path', deprecated ? el('s', {}, path) : path)
  fill('.label', deprecated ? 'deprecated' : (operation['x-stability'] ?? ''))
  fill('.description', ...markUp(description))
  fill('.parameters', ...parameters.map(buildParameter))
  fill('.fields', ...parameters.map(parameter => buildField(operationId, parameter)))
  fill('.responses', ...Object.entries(responses).map(buildResponse))
  const described = Object.values(responses)
  const headers = new Map(described.flatMap(({ headers }) => Object.entries(headers)))
  fill('.described', ...[...headers].map(([name, one]) => buildTerm(name, '', one.description)))
  fillBody(panel, '.request', requestBody?.content)
  fillBody(panel, '.result', described[0]?.content)
  prepareTrial(panel, operation)
  find(panel, 'summary').addEventListener('click', () => {
    if (!panel.open) history.replaceState(null, '', `#${panel.id}`)
  })
  return panel
}

/** Removes the parts that describe a body if there is none. */
function fillBody(panel: HTMLElement, selector: string, content?: Body['content']) {
  for (const part of panel.querySelectorAll(selector)) {
    if (!content) {
      part.remove()
      continue
    }
    const { schema, example } = content['application/json']
    part.querySelector('dl')?.append(...buildProperties(schema))
    part.querySelector('pre, textarea')?.append(formatJson(example))
  }
}

/** Opens the operation that the address names, as in `#/pets/getPet`. False if it names none. */
function openAddressed() {
  const panel = document.getElementById(location.hash.slice(1))
  if (!panel?.matches('.operation')) return false
  panel.setAttribute('open', '')
  panel.querySelector('summary')?.focus({ preventScroll: true })
  panel.scrollIntoView()
  return true
}

async function load() {
  const loaded = await fetch(resolveUrl('openapi.json'))
    .then(response => response.json())
    .catch(() => undefined)
  if (!loaded?.paths) return byId('problem').append('The reference cannot be loaded. Reload this page.')
  const lookUp = (reference: string) => {
    const [group = '', name = ''] = reference.replace('#/components/', '').split('/')
    return loaded.components[group][name]
  }
  // References have no cycles.
  const whole = JSON.stringify(loaded, (_key, part) => (part?.$ref ? lookUp(part.$ref) : part))
  const { info, servers, paths, components } = JSON.parse(whole)
  byId('summary').append(info.summary)
  byId('description').append(...markUp(info.description))
  for (const { url, description } of servers) {
    const address = url.startsWith('/') ? baseUrl : url
    byId('servers').append(el('p', {}, el('code', {}, address), ' ', el('span', {}, description)))
  }
  byId('authentication').append(...markUp(components.securitySchemes.bearerAuth.description))
  const operations = Object.entries<Record<string, Operation>>(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path })),
  )
  byId('operations').append(...operations.map(buildPanel))
  byId('about').hidden = false
  if (!openAddressed()) byId('operations').firstElementChild?.setAttribute('open', '')
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
  document.querySelectorAll<HTMLElement>('.operation').forEach(clearResponse)
  ;(byId('key-form') as HTMLFormElement).reset()
  showKey()
  site.askForKey()
}
onSubmit(byId('key-form'), () => {
  site.useTypedKey()
  site.acceptKey()
  showKey()
  afterKey.focus()
})
addEventListener('hashchange', openAddressed)
showKey()
load()
