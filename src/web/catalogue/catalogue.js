// @ts-check
// The state of the page, and the actions of the user.
import { byId, cardOf, explain, inputOf, record, showNotice, showProblem, skeletonCards } from './catalogue-view.js'
import { createCall, getCall, newIdempotencyKey, newPetBody, petsUrl, problemsByField, send } from './catalogue-wire.js'

/** @import { Answer, Call, Pet } from './catalogue-wire.js' */

const storedAs = 'petstore-key'
const pets = byId('pets')
const more = byId('more')
const notice = byId('notice')
const keyInput = inputOf('key')
const store = sessionStore()

let key = store?.getItem(storedAs) ?? ''
let status = /** @type {HTMLInputElement} */ (document.querySelector('[name=filter]:checked')).value
/** @type {URL | undefined} */
let next
/** Counts lists: a response for an earlier list is not shown. */
let listNumber = 0
let loading = false
let saving = false
/** Repeats the failed request while its error is shown. @type {(() => void) | undefined} */
let retry
/** The last creation, until it succeeds: a retry with its key adds nothing twice. */
let attempt = { body: '', idempotencyKey: '' }

/** A browser may forbid it: the key then lasts as long as the page. */
function sessionStore() {
  try {
    return sessionStorage
  } catch {
    return undefined
  }
}

/** @param {'welcome' | 'catalogue'} view */
function show(view) {
  const inside = view === 'catalogue'
  byId('main').dataset['view'] = view
  byId('welcome').hidden = inside
  for (const id of ['bar', 'add', 'list', 'leave']) byId(id).hidden = !inside
}

/** @param {Call} call */
async function ask(call) {
  const answer = await send(call, key)
  record(call, answer.status)
  return answer
}

/** @param {string} problem */
function welcome(problem) {
  store?.removeItem(storedAs)
  listNumber++
  show('welcome')
  showProblem('key', problem)
  keyInput.focus()
}

async function enter() {
  const typed = keyInput.value.trim()
  if (!typed) return welcome('Enter a key.')
  if (!/^[\x21-\x7e]+$/.test(typed)) return welcome('A key has no spaces and no accents. Copy it again.')
  key = typed
  const mine = ++listNumber
  byId('enter').textContent = 'Checking the key…'
  const answer = await ask(firstPage())
  byId('enter').textContent = 'Show the animals'
  if (mine !== listNumber) return
  if (!Array.isArray(answer.body)) return welcome(explain(answer).join('. '))
  store?.setItem(storedAs, key)
  keyInput.value = ''
  showProblem('key', '')
  show('catalogue')
  pets.replaceChildren()
  clearNotice()
  append(answer)
  byId('heading').focus()
}

const firstPage = () => getCall(petsUrl(status && `?status=${status}`))

/** Starts the list again. */
function list() {
  next = undefined
  more.hidden = true
  byId('count').textContent = 'Loading…'
  byId('done').textContent = ''
  pets.replaceChildren(...skeletonCards())
  return load(firstPage(), true)
}

/**
 * @param {Call} call
 * @param {boolean} first
 */
async function load(call, first) {
  const mine = ++listNumber
  clearNotice()
  loading = true
  pets.ariaBusy = 'true'
  more.textContent = 'Loading…'
  const answer = await ask(call)
  if (mine !== listNumber) return
  if (first) pets.replaceChildren()
  if (Array.isArray(answer.body)) return append(answer)
  endLoading()
  more.hidden = true
  if (answer.status === 401) return welcome(explain(answer).join('. '))
  if (first) byId('count').textContent = ''
  retry = first ? list : () => load(call, false)
  showNotice(...explain(answer), 'Try again', () => {
    byId('heading').focus()
    retry?.()
  })
}

function clearNotice() {
  notice.hidden = true
  retry = undefined
}

function endLoading() {
  loading = false
  pets.ariaBusy = 'false'
  more.textContent = 'Load more'
}

/** @param {Answer} answer */
function append(answer) {
  const cards = /** @type {Pet[]} */ (answer.body).map(cardOf)
  pets.append(...cards)
  next = answer.next
  endLoading()
  const atButton = document.activeElement === more
  more.hidden = next === undefined
  if (atButton && more.hidden) cards[0]?.focus()
  count()
  if (pets.children.length === 0) showEmpty()
  watch()
}

function count() {
  const shown = pets.children.length
  const what = next ? 'so far' : shown === 1 ? 'animal' : 'animals'
  byId('count').textContent = `${shown.toLocaleString('en')} ${what}`
}

function showEmpty() {
  if (status === '') {
    const text = 'The catalogue is empty.'
    showNotice('No animals yet', text, 'Add the first animal', openForm)
  } else {
    const text = 'There may be animals with another status.'
    showNotice(`No animal is ${status}`, text, 'Show all animals', showAll)
  }
}

function openForm() {
  byId('add').setAttribute('open', '')
  byId('name').focus()
}

function showAll() {
  const radio = inputOf('all')
  radio.focus()
  radio.click()
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

function loadMore() {
  if (next && !loading && !retry) load(getCall(next), false)
}

async function save() {
  if (saving) return
  saving = true
  const fields = {
    name: inputOf('name').value,
    categoryId: inputOf('categoryId').value,
    status: inputOf('status').value,
  }
  const body = newPetBody(fields)
  if (attempt.body !== body) attempt = { body, idempotencyKey: newIdempotencyKey() }
  byId('done').textContent = ''
  byId('save').textContent = 'Adding…'
  const answer = await ask(createCall(body, attempt.idempotencyKey))
  byId('save').textContent = 'Add to the catalogue'
  saving = false
  const problems = answer.status === 400 ? problemsByField(answer.message) : new Map()
  for (const field of ['status', 'categoryId', 'name']) {
    showProblem(field, problems.get(field) ?? '')
    if (problems.has(field)) byId(field).focus()
  }
  if (answer.status === 401) return welcome(explain(answer).join('. '))
  const other = answer.status === 400 ? (problems.get('') ?? '') : explain(answer).join('. ')
  showProblem('form', answer.status === 201 ? '' : other)
  if (answer.status === 201) added(/** @type {Pet} */ (answer.body))
}

/** @param {Pet} pet */
function added(pet) {
  attempt = { body: '', idempotencyKey: '' }
  const where = placementOf(pet)
  byId('done').textContent = `Added as No. ${pet.id}. ${where}`
  document.forms.namedItem('new-pet')?.reset()
  byId('name').focus()
}

/**
 * Adds a new animal to the list if its end is loaded, and says where it is.
 * @param {Pet} pet
 */
function placementOf(pet) {
  if (status && pet.status !== status) return 'The filter hides it now.'
  if (next || loading || retry) return 'It is at the end of the list.'
  if (!document.getElementById(`pet-${pet.id}`)) {
    const card = cardOf(pet)
    card.classList.add('new')
    pets.append(card)
  }
  notice.hidden = true
  count()
  return 'It is the last one in the list.'
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
more.addEventListener('click', loadMore)
byId('refresh').addEventListener('click', list)
byId('leave').addEventListener('click', () => welcome(''))
byId('filter').addEventListener('change', event => {
  status = /** @type {HTMLInputElement} */ (event.target).value
  list()
})
addEventListener('online', () => retry?.())
if (matchMedia('(min-width: 60rem)').matches) {
  for (const id of ['add', 'requests']) byId(id).setAttribute('open', '')
}
if (key) {
  show('catalogue')
  list()
} else show('welcome')
