// @ts-check
// The view. Text from the service is set as text, never as HTML.

import { byId, copy } from '../site.js'
import { curlOf } from './catalogue-wire.js'

/** @import { Answer, Call, Pet } from './catalogue-wire.js' */

const entriesMax = 10
const longNameChars = 60
const shortNameChars = 40
const skeletons = 9

/**
 * @param {Element | DocumentFragment} within
 * @param {string} selector
 */
const find = (within, selector) => /** @type {HTMLElement} */ (within.querySelector(selector))

/** @param {string} id */
function copyOf(id) {
  const { content } = /** @type {HTMLTemplateElement} */ (byId(id))
  return /** @type {HTMLElement} */ (/** @type {Element} */ (content.firstElementChild).cloneNode(true))
}

/** @param {Pet} pet */
export function cardOf({ id, name, categoryId, status = '' }) {
  const card = copyOf('card')
  card.id = `pet-${id}`
  const badge = find(card, '.badge')
  badge.textContent = /[\p{L}\p{N}]/u.exec(name)?.[0].toLocaleUpperCase() ?? '•'
  badge.style.setProperty('--hue', String(hueOf(categoryId)))
  const shown = find(card, '.name')
  shown.textContent = name
  if (name.length > longNameChars) shown.after(wholeNameButton(shown))
  const label = find(card, '.status')
  label.textContent = status ? status.charAt(0).toUpperCase() + status.slice(1) : 'No status'
  label.dataset['status'] = status
  find(card, '.facts').textContent = `No. ${id} · Category ${categoryId}`
  return card
}

/** @param {Pet} pet */
export function newCardOf(pet) {
  const card = cardOf(pet)
  card.classList.add('new')
  const mark = document.createElement('span')
  mark.className = 'status'
  mark.textContent = 'New'
  find(card, '.labels').prepend(mark)
  return card
}

/** @param {HTMLElement} name */
function wholeNameButton(name) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'quiet whole'
  const toggle = (/** @type {boolean} */ whole) => {
    name.classList.toggle('cut', !whole)
    button.textContent = whole ? 'Show less' : 'Show the whole name'
    button.setAttribute('aria-expanded', String(whole))
  }
  button.addEventListener('click', () => toggle(name.classList.contains('cut')))
  toggle(false)
  return button
}

/**
 * The same category always has the same colour.
 * @param {string} categoryId
 */
function hueOf(categoryId) {
  return [...categoryId].reduce((hue, digit) => (hue * 31 + digit.charCodeAt(0) * 47) % 360, 0)
}

export function skeletonCards() {
  return Array.from({ length: skeletons }, () => {
    const card = document.createElement('li')
    card.className = 'card skeleton'
    card.ariaHidden = 'true'
    return card
  })
}

/**
 * @param {'notice' | 'banner'} box in place of the list, or above it
 * @param {string} title
 * @param {string} text
 * @param {string} action
 * @param {() => void} act
 */
export function showBox(box, title, text, action, act) {
  const shown = byId(box)
  find(shown, 'h2').textContent = title
  find(shown, 'p').textContent = text
  const button = /** @type {HTMLButtonElement} */ (find(shown, 'button'))
  button.textContent = action
  button.onclick = act
  shown.hidden = false
}

/**
 * What went wrong, and what to do.
 * @param {Answer} answer
 * @returns {[title: string, text: string]}
 */
export function explain({ status, message, requestId }) {
  const reason = message && `${message}. `
  switch (status) {
    case 0:
      return ['The service cannot be reached', 'Check your connection, then try again.']
    case 401:
      return ['This key is not accepted', reason.trim()]
    case 403:
      return ['This key does not open the catalogue', reason.trim()]
    case 429:
      return ['Too many requests', `${reason}Wait a moment, then try again.`]
    default: {
      const id = requestId && ` the request id ${requestId}`
      const what = reason || `Unexpected response (status ${status}). `
      return ['Something went wrong', `${what}Try again. If it happens again, tell the operator${id}.`]
    }
  }
}

/** @param {Answer} answer */
export const explanation = answer => explain(answer).filter(Boolean).join('. ')

/** @param {string} name */
export function shortName(name) {
  const chars = [...name]
  return chars.length > shortNameChars ? `${chars.slice(0, shortNameChars).join('')}…` : name
}

/**
 * @param {Pet} pet
 * @param {boolean} isListed
 */
export function showAdded({ id, name }, isListed) {
  // Isolated, so that a name in another direction does not turn the sentence around.
  const isolated = document.createElement('bdi')
  isolated.textContent = shortName(name)
  byId('done').replaceChildren('Added ', isolated, ` as No. ${id}.${isListed ? '' : ' The filter hides it.'}`)
}

/**
 * @param {string} field
 * @param {string} problem '' if there is none
 */
export function showProblem(field, problem) {
  byId(`${field}-problem`).textContent = problem
  document.getElementById(field)?.setAttribute('aria-invalid', String(problem !== ''))
}

/**
 * Adds a request to the log.
 * @param {Call} call
 * @param {number} status
 */
export function record(call, status) {
  const entry = copyOf('entry')
  find(entry, 'b').textContent = status ? String(status) : 'No response'
  find(entry, 'b').dataset['good'] = String(status >= 200 && status < 300)
  find(entry, 'span').textContent = `${call.method} ${call.url.pathname}${call.url.search}`
  const code = find(entry, 'code')
  code.textContent = curlOf(call)
  // It scrolls.
  code.tabIndex = 0
  const button = find(entry, 'button')
  button.setAttribute('aria-label', `Copy ${call.method} as curl`)
  button.addEventListener('click', () => copy(code, button))
  const log = byId('log')
  log.prepend(entry)
  while (log.children.length > entriesMax) log.lastElementChild?.remove()
}
