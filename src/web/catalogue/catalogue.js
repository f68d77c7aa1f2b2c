// @ts-check
// The state of the page, and the actions of the person.

import { forgetKey, storedKey, storeKey, tabStorage } from '../key.js'
import * as view from './catalogue-view.js'
import { byId, inputOf } from './catalogue-view.js'
import * as wire from './catalogue-wire.js'

/** @import { Answer, Call, Pet } from './catalogue-wire.js' */

const draftName = 'petstore-draft'
const shownNameChars = 40
const restoredMax = 5_000
const scrollEndMs = 150
const pets = byId('pets')
const more = byId('more')
const banner = byId('banner')
const keyInput = inputOf('key')
const form = byId('new-pet')

let key = storedKey()
/** The filter of the list on the page. */
let status = ''
/** @type {URL | undefined} */
let next
/** Counts lists: a response for an earlier list is not shown. */
let listNumber = 0
let loading = false
let saving = false
/** The last creation, until it succeeds: a retry with its key adds nothing twice. */
let attempt = { body: '', idempotencyKey: '' }

/** @param {'welcome' | 'catalogue'} screen */
function show(screen) {
  const inside = screen === 'catalogue'
  byId('main').dataset['view'] = screen
  byId('welcome').hidden = inside
  for (const part of document.querySelectorAll('#bar, aside, #list, #leave')) part.toggleAttribute('hidden', !inside)
}

const isInside = () => byId('welcome').hidden

/** @param {Call} call */
async function ask(call) {
  const answer = await wire.send(call, key)
  view.record(call, answer.status)
  return answer
}

/** @param {string} problem */
function welcome(problem) {
  forgetKey()
  listNumber++
  show('welcome')
  view.showProblem('key', problem)
  keyInput.focus()
}

async function enter() {
  const typed = keyInput.value.trim()
  if (!typed) return welcome('Enter a key')
  if (!/^[\x21-\x7e]+$/.test(typed)) return welcome('A key has no spaces and no accents. Copy it again.')
  key = typed
  byId('enter').textContent = 'Checking the key…'
  const entered = await open()
  byId('enter').textContent = 'Show the animals'
  if (!entered) return
  storeKey(key, inputOf('remember').checked)
  keyInput.value = ''
  reveal(false)
  view.showProblem('key', '')
  show('catalogue')
  goTo(addressed('at'))
  byId('heading').focus({ preventScroll: true })
}

/** Reloads the page, so that nothing of this person remains for the next one. */
function leave() {
  forgetKey()
  tabStorage?.removeItem(draftName)
  location.replace(location.pathname)
}

/** @param {boolean} visible */
function reveal(visible) {
  keyInput.type = visible ? 'text' : 'password'
  const action = visible ? 'Hide' : 'Show'
  byId('reveal').textContent = action
  byId('reveal').ariaLabel = `${action} the key`
}

// The filter and the first visible animal are in the address, so that reload and back find them again.

/** @param {'status' | 'at'} name */
const addressed = name => new URLSearchParams(location.search).get(name) ?? ''

/** @param {string} at */
const addressOf = at => wire.petsUrl({ status, at }).search

/** Shows the list that the address names. */
function open() {
  const [wanted, at] = [addressed('status'), addressed('at')]
  return list(document.getElementById(`filter-${wanted}`) ? wanted : '', /^-?\d{1,19}$/.test(at) ? at : '')
}

/**
 * Starts the list again, and goes to an animal in it. Until then, the cards of the last list stay.
 * @param {string} wanted its status
 * @param {string} at the id of the animal, or ''
 * @returns {Promise<boolean>} false if it failed, or another list has begun
 */
async function list(wanted, at) {
  const again = () => list(wanted, at)
  const mine = begin(wanted)
  /** @type {Pet[]} */
  const found = []
  /** @type {URL | undefined} */
  let url = wire.petsUrl({ status: wanted, limit: at && '100' })
  do {
    const answer = await fetchPage(url, mine, again)
    if (!answer) return false
    found.push(.../** @type {Pet[]} */ (answer.body))
    url = answer.next
  } while (url && at && found.length < restoredMax && BigInt(found.at(-1)?.id ?? 0) < BigInt(at))
  byId('done').textContent = ''
  pets.replaceChildren()
  status = wanted
  append(found, url)
  if (at) goTo(at)
  else if (addressOf('') !== location.search) {
    history.pushState(null, '', addressOf('') || location.pathname)
    scrollTo(0, 0)
  }
  return true
}

/**
 * @param {string} wanted
 * @returns {number} of this list
 */
function begin(wanted) {
  inputOf(`filter-${wanted}`).checked = true
  banner.hidden = true
  loading = true
  pets.ariaBusy = 'true'
  more.textContent = 'Loading…'
  if (pets.childElementCount === 0) {
    byId('notice').hidden = true
    byId('count').textContent = 'Loading…'
    pets.replaceChildren(...view.skeletonCards())
  }
  return ++listNumber
}

/**
 * Undefined if it failed, or another list has begun.
 * @param {URL} url
 * @param {number} mine
 * @param {() => void} again
 */
async function fetchPage(url, mine, again) {
  const answer = await ask(wire.getCall(url))
  if (mine !== listNumber) return undefined
  if (Array.isArray(answer.body)) return answer
  endLoading()
  const shown = document.querySelectorAll('.card:not(.skeleton)')
  pets.replaceChildren(...shown)
  if (shown.length === 0) byId('count').textContent = ''
  if (answer.status === 401 || !isInside()) welcome(view.explain(answer).join('. '))
  else {
    inputOf(`filter-${status}`).checked = true
    view.showBox('banner', ...view.explain(answer), 'Try again', () => {
      byId('heading').focus({ preventScroll: true })
      again()
    })
  }
  return undefined
}

function endLoading() {
  loading = false
  pets.ariaBusy = 'false'
  more.textContent = 'Load more'
}

/**
 * @param {Pet[]} found
 * @param {URL | undefined} following
 */
function append(found, following) {
  // A new animal is already at the top.
  const cards = found.filter(({ id }) => !document.getElementById(`pet-${id}`)).map(view.cardOf)
  pets.append(...cards)
  next = following
  endLoading()
  const atButton = document.activeElement === more
  more.hidden = next === undefined
  if (atButton && more.hidden) cards[0]?.focus()
  count()
  watch()
}

function count() {
  const shown = pets.childElementCount
  const what = next ? 'shown, more to load' : shown === 1 ? 'animal' : 'animals'
  byId('count').textContent = `${shown.toLocaleString('en')} ${what}`
  byId('notice').hidden = true
  if (shown > 0) return
  const [title, text] = [`No animal is ${status}`, 'There may be animals with another status.']
  if (status) view.showBox('notice', title, text, 'Show all animals', showAll)
  else view.showBox('notice', 'No animals yet', 'The catalogue is empty.', 'Add the first animal', openForm)
}

function openForm() {
  byId('add').setAttribute('open', '')
  byId('name').focus()
}

function showAll() {
  byId('heading').focus()
  list('', '')
}

async function loadMore() {
  if (!next || loading || !banner.hidden) return
  await loadFrom(next)
  rememberPlace()
}

/** @param {URL} url */
async function loadFrom(url) {
  const answer = await fetchPage(url, begin(status), () => loadFrom(url))
  if (answer) append(/** @type {Pet[]} */ (answer.body), answer.next)
}

const observer = 'IntersectionObserver' in window && new IntersectionObserver(seen, { rootMargin: '240px' })

/** @param {IntersectionObserverEntry[]} entries */
function seen(entries) {
  if (entries.some(entry => entry.isIntersecting)) loadMore()
}

/** An observer reports changes only: observe again, in case the end of the list is still visible. */
function watch() {
  if (!observer) return
  observer.unobserve(more)
  if (next) observer.observe(more)
}

/** @param {Element} element */
const topOf = element => element.getBoundingClientRect().top

/** While the page scrolls, the filter covers it down to here. */
const topLine = () => Math.max(0, byId('bar').getBoundingClientRect().bottom)

/** The first animal below the filter, unless the page is at its top. */
function firstVisible() {
  const line = topLine()
  const isBelow = (/** @type {Element} */ card) => !card.matches('.new, .skeleton') && topOf(card) >= line
  return scrollY > 0 ? [...pets.children].find(isBelow) : undefined
}

/** @param {Element} [card] */
const idOf = card => card?.id.slice('pet-'.length) ?? ''

function rememberPlace() {
  if (loading || !isInside()) return
  const card = firstVisible()
  history.replaceState(card ? { top: topOf(card) } : null, '', addressOf(idOf(card)) || location.pathname)
}

/** @param {string} at */
function goTo(at) {
  const card = document.getElementById(`pet-${at}`)
  if (card) scrollBy(0, topOf(card) - (history.state?.top ?? topLine()))
}

/** @type {Record<string, (value: string) => string>} */
const rules = { name: wire.nameProblem, categoryId: wire.categoryProblem }

/**
 * Shows and returns what is wrong with a field.
 * @param {string} field
 */
function problemOf(field) {
  const problem = rules[field]?.(inputOf(field).value) ?? ''
  view.showProblem(field, problem)
  return problem
}

const draft = () => ({
  name: inputOf('name').value,
  categoryId: inputOf('categoryId').value,
  status: inputOf('status').value,
})

/** A reload loses no animal, and adds none twice. */
function storeDraft() {
  tabStorage?.setItem(draftName, JSON.stringify({ ...draft(), attempt }))
}

function restoreDraft() {
  const stored = JSON.parse(tabStorage?.getItem(draftName) ?? 'null')
  if (!stored) return
  attempt = stored.attempt
  for (const field of ['name', 'categoryId', 'status']) inputOf(field).value = stored[field]
  if (stored.name) byId('add').setAttribute('open', '')
}

async function save() {
  if (saving) return
  byId('done').textContent = ''
  view.showProblem('form', '')
  const [invalid] = Object.keys(rules).filter(problemOf)
  if (invalid) return byId(invalid).focus()
  const body = wire.newPetBody(draft())
  if (attempt.body !== body) attempt = { body, idempotencyKey: wire.newIdempotencyKey() }
  storeDraft()
  saving = true
  byId('save').textContent = 'Adding…'
  const answer = await ask(wire.createCall(body, attempt.idempotencyKey))
  byId('save').textContent = 'Add to the catalogue'
  saving = false
  if (answer.status === 201) return added(/** @type {Pet} */ (answer.body))
  if (answer.status === 401) return welcome(view.explain(answer).join('. '))
  form.hidden = answer.status === 403
  view.showProblem('form', refusalOf(answer))
}

/** @param {Answer} answer */
function refusalOf(answer) {
  if (answer.status === 403) return 'This key may only read. To add animals, change to a key that may write.'
  if (answer.status === 400) return `${answer.message}.`
  const [title, text] = view.explain(answer)
  return answer.status === 0 ? `${title}. Your animal is still here: add it again later.` : `${title}. ${text}`
}

/**
 * The category and the status stay: the next animal is often of the same kind.
 * @param {Pet} pet
 */
function added(pet) {
  attempt = { body: '', idempotencyKey: '' }
  inputOf('name').value = ''
  storeDraft()
  const chars = [...pet.name]
  const name = chars.length > shownNameChars ? `${chars.slice(0, shownNameChars).join('')}…` : pet.name
  const isListed = !status || pet.status === status
  byId('done').textContent = `Added ${name} as No. ${pet.id}.${isListed ? '' : ' The filter hides it.'}`
  byId('name').focus()
  if (!isListed) return
  document.getElementById(`pet-${pet.id}`)?.remove()
  pets.prepend(view.newCardOf(pet))
  if (!loading) count()
}

/**
 * @param {string} id
 * @param {() => void} act
 */
function onSubmit(id, act) {
  byId(id).addEventListener('submit', event => {
    event.preventDefault()
    act()
  })
}

onSubmit('welcome', enter)
onSubmit('new-pet', save)
form.addEventListener('input', ({ target }) => {
  storeDraft()
  const field = /** @type {HTMLElement} */ (target)
  if (field.ariaInvalid === 'true') problemOf(field.id)
})
more.addEventListener('click', loadMore)
byId('reveal').addEventListener('click', () => reveal(keyInput.type === 'password'))
byId('leave').addEventListener('click', leave)
byId('refresh').addEventListener('click', () => list(status, idOf(firstVisible())))
byId('filter').addEventListener('change', ({ target }) => list(/** @type {HTMLInputElement} */ (target).value, ''))
addEventListener('online', () => {
  if (!banner.hidden) banner.querySelector('button')?.click()
})
addEventListener('popstate', () => {
  // The skip link changes only the hash.
  if (isInside() && !location.hash) open()
})
addEventListener('pageshow', ({ persisted }) => {
  if (persisted && storedKey() !== key) location.reload()
})
let scrollTimer = 0
addEventListener('scroll', () => {
  clearTimeout(scrollTimer)
  scrollTimer = setTimeout(rememberPlace, scrollEndMs)
})
history.scrollRestoration = 'manual'
if (matchMedia('(min-width: 60rem)').matches) byId('add').setAttribute('open', '')
restoreDraft()
show(key ? 'catalogue' : 'welcome')
if (key) open()
