// @ts-check
// The state of the page, and the actions of the person.

import * as site from '../site.js'
import { byId, inputOf, keyInput, onSubmit, storedKey } from '../site.js'
import * as view from './catalogue-view.js'
import * as wire from './catalogue-wire.js'

/** @import { Answer, Call, Pet } from './catalogue-wire.js' */

const restoredMax = 5_000
const scrollEndMs = 150
const pets = byId('pets')
const more = byId('more')
const banner = byId('banner')
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
  site.forgetKey(key)
  listNumber++
  show('welcome')
  view.showProblem('key', problem)
  keyInput.focus()
}

async function enter() {
  const typed = keyInput.value.trim()
  const problem = site.keyProblem(typed)
  if (problem) return welcome(problem)
  key = typed
  byId('enter').textContent = 'Checking the key…'
  const entered = await open()
  byId('enter').textContent = 'Show the animals'
  if (!entered) return
  site.acceptKey(key)
  view.showProblem('key', '')
  view.showProblem('form', '')
  form.hidden = false
  show('catalogue')
  byId('heading').focus({ preventScroll: true })
  goTo(addressed('at'))
}

// The filter and the first visible animal are in the address, so that reload and back find them again.

/** @param {'status' | 'at'} name */
const addressed = name => new URLSearchParams(location.search).get(name) ?? ''

/**
 * @param {string} wanted
 * @param {string} at
 */
const addressOf = (wanted, at) => wire.petsUrl({ status: wanted, at }).search || location.pathname

const wantedStatus = () => /** @type {HTMLInputElement} */ (document.querySelector('[name=filter]:checked')).value

/** Shows the list that the address names. */
function open() {
  const [wanted, at] = [addressed('status'), addressed('at')]
  const known = document.getElementById(`filter-${wanted}`) ? wanted : ''
  const id = /^-?\d{1,19}$/.test(at) ? at : ''
  history.replaceState(history.state, '', addressOf(known, id))
  return list(known, id)
}

/**
 * Starts the list again, and goes to an animal in it. Until then, the cards of the last list stay.
 * @param {string} wanted its status
 * @param {string} at the id of the animal, or ''
 * @returns {Promise<boolean>} false if it failed, or another list has begun
 */
async function list(wanted, at) {
  byId('done').textContent = ''
  const mine = begin(wanted)
  const old = [...pets.children]
  /** @type {Pet[]} */
  const found = []
  /** @type {URL | undefined} */
  let url = wire.petsUrl({ status: wanted, limit: at && '100' })
  do {
    const answer = await fetchPage(url, mine, () => list(wanted, at))
    if (!answer) return false
    found.push(.../** @type {Pet[]} */ (answer.body))
    url = answer.next
  } while (url && at && found.length < restoredMax && BigInt(found.at(-1)?.id ?? 0) < BigInt(at))
  for (const card of old) card.remove()
  status = wanted
  append(found, url)
  if (wanted !== addressed('status')) history.pushState(null, '', addressOf(wanted, at))
  goTo(at)
  return true
}

/**
 * @param {string} wanted
 * @returns {number} the number of this list
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
  if (answer.status === 401 || !isInside()) welcome(view.explanation(answer))
  else {
    inputOf(`filter-${status}`).checked = true
    view.showBox('banner', ...view.explain(answer), 'Try again', () => {
      if (banner.contains(document.activeElement)) byId('heading').focus({ preventScroll: true })
      again()
    })
    banner.scrollIntoView({ block: 'nearest' })
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
  const text = status ? 'There may be animals with another status.' : 'The catalogue is empty.'
  if (status) view.showBox('notice', `No animal is ${status}`, text, 'Show all animals', showAll)
  else view.showBox('notice', 'No animals yet', text, 'Add the first animal', openForm)
}

function openForm() {
  byId('add').setAttribute('open', '')
  byId(form.hidden ? 'leave' : 'name').focus()
}

function showAll() {
  byId('heading').focus()
  list('', '')
}

async function loadMore() {
  if (!next || loading) return
  await loadFrom(next)
  rememberPlace()
}

/** @param {URL} url */
async function loadFrom(url) {
  const answer = await fetchPage(url, begin(status), () => loadFrom(url))
  if (answer) append(/** @type {Pet[]} */ (answer.body), answer.next)
}

const observer = new IntersectionObserver(loadVisible, { rootMargin: '240px' })

/** @param {IntersectionObserverEntry[]} entries */
function loadVisible(entries) {
  if (banner.hidden && entries.some(entry => entry.isIntersecting)) loadMore()
}

/** An observer reports changes only: observe again, in case the end of the list is still visible. */
function watch() {
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
  history.replaceState(card ? { top: topOf(card) } : null, '', addressOf(status, idOf(card)))
}

/**
 * To an animal, or to the top of the page.
 * @param {string} at
 */
function goTo(at) {
  const card = document.getElementById(`pet-${at}`)
  if (card) scrollBy(0, topOf(card) - (history.state?.top ?? topLine()))
  else scrollTo(0, 0)
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
  try {
    site.tabStorage?.setItem(site.draftName, JSON.stringify({ ...draft(), attempt }))
  } catch {
    // The storage is full: the draft lasts as long as the page.
  }
}

function restoreDraft() {
  const stored = JSON.parse(site.tabStorage?.getItem(site.draftName) ?? 'null')
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
  const sent = draft()
  const body = wire.newPetBody(sent)
  if (attempt.body !== body) attempt = { body, idempotencyKey: wire.newIdempotencyKey() }
  storeDraft()
  saving = true
  byId('save').textContent = 'Adding…'
  const answer = await ask(wire.createCall(body, attempt.idempotencyKey))
  byId('save').textContent = 'Add to the catalogue'
  saving = false
  if (answer.status === 201) return added(/** @type {Pet} */ (answer.body), sent.name)
  if (answer.status === 401) return welcome(view.explanation(answer))
  view.showProblem('form', refusalOf(answer, sent.name))
  if (answer.status !== 403) return
  form.hidden = true
  byId('leave').focus()
}

/**
 * @param {Answer} answer
 * @param {string} name
 */
function refusalOf(answer, name) {
  if (answer.status === 403) return 'This key may only read. To add animals, change to a key that may write.'
  if (answer.status === 400) return `${answer.message}.`
  if (answer.status !== 0) return view.explanation(answer)
  // The person may have typed the next name already. The service may have added the animal without our seeing it.
  const isInForm = inputOf('name').value === name
  const advice = isInForm
    ? 'is still in the form: add it again later'
    : 'may not be added: look for it in the list later'
  return `The service cannot be reached. ${view.shortName(name)} ${advice}.`
}

/**
 * The category and the status stay: the next animal is often of the same kind.
 * @param {Pet} pet
 * @param {string} sentName
 */
function added(pet, sentName) {
  attempt = { body: '', idempotencyKey: '' }
  // Unless the person has typed the next name already.
  if (inputOf('name').value === sentName) inputOf('name').value = ''
  storeDraft()
  const isListed = ['', pet.status].includes(wantedStatus())
  view.showAdded(pet, isListed)
  byId('name').focus({ preventScroll: true })
  if (!isListed) return
  document.getElementById(`pet-${pet.id}`)?.remove()
  pets.prepend(view.newCardOf(pet))
  if (!loading) count()
}

function refresh() {
  if (banner.hidden) list(wantedStatus(), idOf(firstVisible()))
  else banner.querySelector('button')?.click()
}

onSubmit(byId('welcome'), enter)
onSubmit(form, save)
form.addEventListener('input', ({ target }) => {
  storeDraft()
  const field = /** @type {HTMLElement} */ (target)
  if (field.ariaInvalid === 'true') problemOf(field.id)
})
byId('save').addEventListener('click', event => {
  // The second click of a double click would submit the emptied form.
  if (event.detail > 1) event.preventDefault()
})
more.addEventListener('click', loadMore)
byId('refresh').addEventListener('click', refresh)
byId('filter').addEventListener('change', () => list(wantedStatus(), ''))
addEventListener('online', () => {
  if (!banner.hidden) refresh()
})
addEventListener('popstate', () => {
  // The skip link changes only the hash.
  if (isInside() && (!location.hash || addressed('status') !== status)) open()
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
