// @ts-check
// The page's state, and what each action of the person does.
import {
  byId,
  cardOf,
  explain,
  inputOf,
  record,
  showNotice,
  showProblem,
  skeletonCards,
} from './catalogue-view.js'
import { createCall, getCall, newOnce, newPetBody, petsUrl, problemsByField, send } from './catalogue-wire.js'

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
/** Counts lists: an answer that comes after the person asked for another list is not shown. */
let turn = 0
let loading = false
let saving = false
/** Asks again for what failed, as long as that is what the list says. @type {(() => void) | undefined} */
let retry
/** The creation that was sent last, as long as it has not succeeded: sent again, it adds nothing twice. */
let attempt = { body: '', once: '' }

/** A browser may forbid it: then the key is kept only as long as the page is. */
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
  turn++
  show('welcome')
  showProblem('key', problem)
  keyInput.focus()
}

async function enter() {
  const typed = keyInput.value.trim()
  if (!typed) return welcome('Enter the key first.')
  if (!/^[\x21-\x7e]+$/.test(typed)) return welcome('A key has no spaces and no accents. Copy it once more.')
  key = typed
  const mine = ++turn
  byId('enter').textContent = 'Checking the key…'
  const answer = await ask(firstPage())
  byId('enter').textContent = 'Show the animals'
  if (mine !== turn) return
  if (!Array.isArray(answer.body)) return welcome(explain(answer).join('. '))
  store?.setItem(storedAs, key)
  keyInput.value = ''
  showProblem('key', '')
  show('catalogue')
  pets.replaceChildren()
  calm()
  append(answer)
  byId('heading').focus()
}

const firstPage = () => getCall(petsUrl(status && `?status=${status}`))

/** Begins the list anew. */
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
 * @param {boolean} anew
 */
async function load(call, anew) {
  const mine = ++turn
  calm()
  loading = true
  pets.ariaBusy = 'true'
  more.textContent = 'Loading…'
  const answer = await ask(call)
  if (mine !== turn) return
  if (anew) pets.replaceChildren()
  if (Array.isArray(answer.body)) return append(answer)
  settle()
  more.hidden = true
  if (answer.status === 401) return welcome(explain(answer).join('. '))
  if (anew) byId('count').textContent = ''
  retry = anew ? list : () => load(call, false)
  showNotice(...explain(answer), 'Try again', () => {
    byId('heading').focus()
    retry?.()
  })
}

function calm() {
  notice.hidden = true
  retry = undefined
}

function settle() {
  loading = false
  pets.ariaBusy = 'false'
  more.textContent = 'Load more'
}

/** @param {Answer} answer */
function append(answer) {
  const cards = /** @type {Pet[]} */ (answer.body).map(cardOf)
  pets.append(...cards)
  next = answer.next
  settle()
  const atButton = document.activeElement === more
  more.hidden = next === undefined
  if (atButton && more.hidden) cards[0]?.focus()
  count()
  if (pets.children.length === 0) showEmpty()
  // Whoever still sees the end of the list wants what follows it.
  watch()
}

function count() {
  const shown = pets.children.length
  const what = next ? 'so far' : shown === 1 ? 'animal' : 'animals'
  byId('count').textContent = `${shown.toLocaleString('en')} ${what}`
}

function showEmpty() {
  if (status === '') {
    const text = 'The catalogue is empty. The first animal is a name and a category away.'
    showNotice('No animals yet', text, 'Add the first animal', openForm)
  } else {
    const text = 'Animals with another status may be there.'
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

/** An observer tells of changes only: observing anew makes it look again. */
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
  if (attempt.body !== body) attempt = { body, once: newOnce() }
  byId('done').textContent = ''
  byId('save').textContent = 'Adding…'
  const answer = await ask(createCall(body, attempt.once))
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
  attempt = { body: '', once: '' }
  const where = placeOf(pet)
  byId('done').textContent = `Added as No. ${pet.id}. ${where}`
  document.forms.namedItem('new-pet')?.reset()
  byId('name').focus()
}

/**
 * Puts a new animal where the list ends, if that is in sight, and says where it is.
 * @param {Pet} pet
 */
function placeOf(pet) {
  if (status && pet.status !== status) return 'The filter hides it now.'
  if (next || loading || retry) return 'It stands at the end of the list.'
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
