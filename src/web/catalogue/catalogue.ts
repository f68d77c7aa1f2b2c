// The catalogue. Text from the service is set as text, never as HTML.

import type { ListOptions, Pet, PetStatus, Pets } from '../../client/index.ts'
import { newIdempotencyKey, PetstoreError, stringify } from '../../client/index.ts'
import * as site from '../site.ts'
import { byId, inputById, keyInput, onSubmit, session, showProblem } from '../site.ts'

const shortNameChars = 40
/** The first page is smaller, so that it is there sooner. */
const laterPagePets = 100
const pets = byId('pets')
const more = byId('more')
const banner = byId('banner')
const form = byId('new-pet') as HTMLFormElement

/** The filter of the list on the page. */
let status = ''
/** Undefined after the last page. */
let next: ListOptions | undefined
/** Counts lists: a response for an earlier list is not shown. */
let listNumber = 0
let loading = false
let saving = false
/** The last creation, until it succeeds: a retry with its key adds nothing twice. */
let attempt = { body: '', idempotencyKey: '' }

const find = (within: Element, selector: string) => within.querySelector(selector) as HTMLElement

const copyTemplate = (id: string) =>
  (byId(id) as HTMLTemplateElement).content.firstElementChild?.cloneNode(true) as HTMLElement

const buildCard = (pet: Pet) => fillCard(copyTemplate('card'), pet)

const findCard = ({ id }: Pet) => document.getElementById(`pet-${id}`)

/** Shows an animal on a card, which may have shown it before. */
function fillCard(card: HTMLElement, pet: Pet) {
  const { id, name, categoryId, status = '' } = pet
  card.id = `pet-${id}`
  const badge = find(card, '.badge')
  badge.textContent = /[\p{L}\p{N}]/u.exec(name)?.[0].toLocaleUpperCase() ?? '•'
  // The same category always has the same colour, and the next one a very different one.
  badge.style.setProperty('--hue', String(Number(categoryId % 360n) * 137))
  find(card, '.name').textContent = shortName(name)
  card.querySelector('details')?.remove()
  if (shortName(name) !== name) {
    const whole = copyTemplate('whole')
    find(whole, 'p').textContent = name
    find(card, '.name').after(whole)
  }
  find(card, '[title=id]').textContent = `No. ${id}`
  find(card, '[title=categoryId]').textContent = `Category ${categoryId}`
  const select = find(card, 'select') as HTMLSelectElement
  select.value = status
  select.ariaLabel = `Status of ${shortName(name)}`
  select.onchange = () => changeStatus(card, pet, select.value as PetStatus | '')
  const label = find(card, '.plain')
  label.textContent = select.selectedOptions[0]?.textContent ?? ''
  label.dataset['status'] = select.dataset['status'] = status
  const opener = find(card, '.opener') as HTMLButtonElement
  opener.ariaLabel = `Edit or remove ${shortName(name)}`
  opener.popoverTargetElement = find(card, '.menu')
  find(card, '.edit').onclick = () => edit(pet)
  find(card, '.remove').onclick = () => remove(pet)
  return card
}

/** A notice is in place of the list, a banner above it. */
function showBox(box: 'notice' | 'banner', title: string, text: string, action: string, act: () => void) {
  const shown = byId(box)
  find(shown, 'h2').textContent = title
  find(shown, 'p').textContent = text
  const button = find(shown, 'button')
  button.textContent = action
  button.onclick = act
  shown.hidden = false
}

/** What went wrong, and what to do. */
function explain({ status, code, message, requestId }: PetstoreError): [title: string, text: string] {
  const isOurs = code !== 'unexpected_response'
  if (status === undefined) return ['The service cannot be reached', 'Check your connection, then try again.']
  if (status === 0) return ['Unexpected response', site.redirected]
  // The message of our service also says what to do.
  if (isOurs && status < 500) return [message, '']
  if (status === 401) return ['This key is not accepted', '']
  if (status === 429) return ['Too many requests', 'Wait a moment, then try again.']
  const id = requestId ? ` the request id ${requestId}` : ''
  const what = isOurs ? message : `Unexpected response (status ${status})`
  return ['Something went wrong', `${what}. Try again. If it happens again, tell the operator${id}.`]
}

/** Isolated, so that a name in another direction does not turn the sentence around. */
function isolate(name: string) {
  const isolated = document.createElement('bdi')
  isolated.textContent = shortName(name)
  return isolated
}

const explanation = (error: PetstoreError) => explain(error).filter(Boolean).join('. ')

function shortName(name: string) {
  const chars = [...name]
  return chars.length > shortNameChars ? `${chars.slice(0, shortNameChars).join('')}…` : name
}

function show(screen: 'welcome' | 'catalogue') {
  const inside = screen === 'catalogue'
  byId('main').dataset['view'] = screen
  byId('welcome').hidden = inside
  for (const part of document.querySelectorAll('#bar, aside, #list, #leave')) {
    part.toggleAttribute('hidden', !inside)
  }
}

const isInside = () => byId('welcome').hidden

/** Sends one request. Returns a failure instead of throwing it. */
function ask<T extends object>(call: (pets: Pets) => Promise<T>): Promise<T | PetstoreError> {
  return call(site.newClient().pets).catch((error: PetstoreError) => error)
}

function welcome(problem: string) {
  site.forgetKey()
  listNumber++
  document.querySelector('dialog')?.close()
  say()
  showForm(true)
  showControls(true)
  show('welcome')
  showProblem('key', problem)
  keyInput.focus()
}

async function enter() {
  if (!site.useTypedKey()) return
  byId('enter').textContent = 'Checking the key…'
  const entered = await open()
  byId('enter').textContent = 'Show the animals'
  if (!entered) return
  site.acceptKey()
  show('catalogue')
  byId('heading').focus({ preventScroll: true })
}

// The filter is in the address, so that reload and back find it again.

const readStatus = () => new URLSearchParams(location.search).get('status') ?? ''

const formatAddress = (wanted: string) => (wanted ? `?status=${wanted}` : location.pathname)

const wantedStatus = () => document.querySelector<HTMLInputElement>('[name=filter]:checked')?.value ?? ''

/** Shows the list that the address names. */
function open() {
  const wanted = readStatus()
  const known = document.getElementById(`filter-${wanted}`) ? wanted : ''
  history.replaceState(null, '', formatAddress(known))
  return list(known)
}

/** Shows the first page of a list. False if it failed, or another list has begun. */
async function list(wanted: string): Promise<boolean> {
  byId('done').textContent = ''
  say()
  const mine = begin(wanted)
  // They stay until the new list is there.
  const old = [...pets.children]
  const page = await fetchPage({ status: (wanted || undefined) as PetStatus | undefined }, mine, () => list(wanted))
  if (!page) return false
  for (const card of old) card.remove()
  status = wanted
  append(page.pets, page.next)
  if (wanted !== readStatus()) history.pushState(null, '', formatAddress(wanted))
  scrollTo(0, 0)
  return true
}

function setLoading(isLoading: boolean) {
  loading = isLoading
  pets.ariaBusy = String(isLoading)
  more.textContent = isLoading ? 'Loading…' : 'Load more'
}

/** Returns the number of this list. */
function begin(wanted: string) {
  inputById(`filter-${wanted}`).checked = true
  banner.hidden = true
  setLoading(true)
  if (pets.childElementCount === 0) {
    byId('notice').hidden = true
    byId('count').textContent = 'Loading…'
  }
  return ++listNumber
}

/** A page of a list and what to ask for next. Undefined if it failed, or another list has begun. */
async function fetchPage(filter: ListOptions, mine: number, again: () => void) {
  const result = await ask(client => client.list(filter).page())
  if (mine !== listNumber) return undefined
  if (!(result instanceof PetstoreError)) {
    const { pets, nextCursor: cursor } = result
    return { pets, next: cursor ? { ...filter, cursor, limit: laterPagePets } : undefined }
  }
  setLoading(false)
  if (pets.childElementCount === 0) byId('count').textContent = ''
  if (result.status === 401 || !isInside()) welcome(explanation(result))
  else {
    inputById(`filter-${status}`).checked = true
    showBox('banner', ...explain(result), 'Try again', () => {
      if (banner.contains(document.activeElement)) byId('heading').focus({ preventScroll: true })
      again()
    })
    banner.scrollIntoView({ block: 'nearest' })
  }
  return undefined
}

function append(found: readonly Pet[], following: ListOptions | undefined) {
  // A new animal is already at the top.
  const cards = found.filter(({ id }) => !document.getElementById(`pet-${id}`)).map(buildCard)
  pets.append(...cards)
  next = following
  setLoading(false)
  const atButton = document.activeElement === more
  more.hidden = next === undefined
  if (atButton && more.hidden) cards[0]?.focus()
  count()
  // An observer reports changes only: observe again, in case the end of the list is still visible.
  observer.unobserve(more)
  if (next) observer.observe(more)
}

function count() {
  const shown = pets.childElementCount
  const what = next ? 'shown, more to load' : shown === 1 ? 'animal' : 'animals'
  byId('count').textContent = `${shown.toLocaleString('en')} ${what}`
  byId('notice').hidden = true
  if (shown > 0) return
  const others = 'There may be animals with another status.'
  if (status) showBox('notice', `No animal is ${status}`, others, 'Show all animals', showAll)
  else showBox('notice', 'No animals yet', 'The catalogue is empty.', 'Add the first animal', openForm)
}

function showAll() {
  byId('heading').focus()
  list('')
}

function openForm() {
  byId('add').setAttribute('open', '')
  byId(form.hidden ? 'read-only' : 'name').focus()
}

async function loadMore() {
  if (!next || loading) return
  const page = await fetchPage(next, begin(status), loadMore)
  if (page) append(page.pets, page.next)
}

const observer = new IntersectionObserver(
  entries => {
    if (banner.hidden && entries.some(entry => entry.isIntersecting)) loadMore()
  },
  { rootMargin: '240px' },
)

/** What is wrong with the text of a field, or '': what helps while typing. For the rest, the service's message is shown. */
const checks: Readonly<Record<string, (typed: string) => string>> = {
  name: typed => (typed.trim() ? '' : 'Enter a name'),
  categoryId(typed) {
    // The client would not send a larger number to the service.
    const isInt64 = /^\s*-?\d+\s*$/.test(typed) && BigInt.asIntN(64, BigInt(typed)) === BigInt(typed)
    return isInt64 ? '' : 'Enter a whole number of up to 18 digits, such as 42'
  },
}

/** Shows what is wrong with a field. False if something is. */
function check(field: string) {
  const { name, value } = inputById(field)
  const problem = checks[name]?.(value) ?? ''
  showProblem(field, problem)
  return problem === ''
}

/** A problem goes away while the person corrects it. */
function checkAgain({ target }: Event) {
  const field = target as HTMLElement
  if (field.ariaInvalid === 'true') check(field.id)
}

/** What was typed in a form. Undefined if something is wrong: then that field has the focus. */
function readFields(prefix: '' | 'edit-') {
  const [invalid] = Object.keys(checks).filter(name => !check(prefix + name))
  if (invalid) return void byId(prefix + invalid).focus()
  return { name: inputById(`${prefix}name`).value, categoryId: BigInt(inputById(`${prefix}categoryId`).value) }
}

async function save() {
  if (saving) return
  byId('done').textContent = ''
  showProblem('form', '')
  const typed = readFields('')
  if (!typed) return
  const { name } = typed
  const pet = { ...typed, status: (inputById('status').value || undefined) as PetStatus | undefined }
  const body = stringify(pet)
  if (attempt.body !== body) attempt = { body, idempotencyKey: newIdempotencyKey() }
  const { key } = session
  saving = true
  byId('save').textContent = 'Adding…'
  const result = await ask(client => client.create(pet, { idempotencyKey: attempt.idempotencyKey }))
  byId('save').textContent = 'Add to the catalogue'
  saving = false
  if (key !== session.key) return
  if (!(result instanceof PetstoreError)) return showAdded(result, name)
  if (result.status === 401) return welcome(explanation(result))
  if (result.code === 'read_only_key') {
    showForm(false)
    return byId('read-only').focus()
  }
  showProblem('form', describeRefusal(result, name))
}

/** A key that may only read gets a sentence in place of the form. */
function showForm(mayWrite: boolean) {
  form.hidden = !mayWrite
  byId('read-only').hidden = mayWrite
}

function describeRefusal(error: PetstoreError, name: string) {
  if (error.status !== undefined) return explanation(error)
  // The person may have typed the next name already. The service may have added the animal without our seeing it.
  const isInForm = inputById('name').value === name
  const advice = isInForm ? 'is still in the form: add it again' : 'may not be added: look for it in the list'
  return `The service cannot be reached. ${shortName(name)} ${advice} later.`
}

/** The category and the status stay: the next animal is often of the same kind. */
function showAdded(pet: Pet, sentName: string) {
  attempt = { body: '', idempotencyKey: '' }
  // Unless the person has typed the next name already.
  if (inputById('name').value === sentName) inputById('name').value = ''
  const isListed = ['', pet.status].includes(wantedStatus())
  const where = isListed ? 'After a reload, it is at the end of the list.' : 'The filter hides it.'
  byId('done').replaceChildren('Added ', isolate(pet.name), ` as No. ${pet.id}. ${where}`)
  byId('name').focus({ preventScroll: true })
  if (!isListed) return
  document.getElementById(`pet-${pet.id}`)?.remove()
  const card = buildCard(pet)
  card.classList.add('new')
  find(card, '.labels').prepend(copyTemplate('new'))
  pets.prepend(card)
  if (!loading) count()
}

/** The focused element is gone, or was disabled. */
const isUnfocused = () => document.activeElement === document.body

/** Shows and announces the outcome of a change. */
function say(...text: (string | Node)[]) {
  byId('said').replaceChildren(...text)
}

/** A key that may not change animals gets a sentence in place of the controls. */
function showControls(mayChange: boolean) {
  byId('list').classList.toggle('view-only', !mayChange)
  byId('view-only').hidden = mayChange
}

/** Sends a change from a card or a dialog, whose controls are disabled meanwhile. Undefined if it failed. */
async function change(from: HTMLElement, pet: Pet, call: (client: Pets) => Promise<Pet>): Promise<Pet | undefined> {
  const { key } = session
  const focused = document.activeElement as HTMLElement
  const controls = from.querySelectorAll<HTMLButtonElement | HTMLSelectElement>('button, select')
  say()
  for (const control of controls) control.disabled = true
  const result = await ask(call)
  for (const control of controls) control.disabled = false
  if (key !== session.key) return undefined
  // A disabled control has lost the focus.
  if (isUnfocused()) focused.focus({ preventScroll: true })
  if (result instanceof PetstoreError) return void (await showFailure(from, pet, result))
  from.closest('dialog')?.close()
  return result
}

/** Failures after which the page is out of date, and how the sentence about the animal ends. */
const outdated: Readonly<Record<string, string>> = {
  status_changed: ' has another status now, so it was not changed.',
  pet_not_found: ' was removed meanwhile.',
  outcome_unknown: ' may have been changed: look at its status.',
}

async function showFailure(from: HTMLElement, pet: Pet, error: PetstoreError) {
  const { status } = error
  const dialog = from.closest('dialog')
  // In a dialog, the person can send the same change again.
  const isUnknown = !dialog && (status === undefined || status === 503)
  const code = isUnknown ? 'outcome_unknown' : error.code
  const ending = outdated[code]
  const mayNotChange = code === 'insufficient_permission'
  if (dialog?.open && !mayNotChange && !ending && status !== 401) {
    find(dialog, '.problem[role]').textContent = explanation(error)
    return
  }
  dialog?.close()
  if (!dialog) fillCard(from, pet)
  if (status === 401) return welcome(explanation(error))
  if (mayNotChange) {
    showControls(false)
    return byId('view-only').focus({ preventScroll: true })
  }
  if (ending && (await list(wantedStatus())) && isUnfocused()) (findCard(pet) ?? byId('heading')).focus()
  if (ending) say(isolate(pet.name), ending)
  else say(explanation(error))
}

/** Shows an animal after a change. */
function showChanged(pet: Pet, ...text: (string | Node)[]) {
  const card = findCard(pet)
  if (card) fillCard(card, pet)
  say(...text, ['', pet.status].includes(status) ? '' : ' The filter hides it after a reload.')
}

/** Only if the animal still has the status that the page shows. */
async function changeStatus(card: HTMLElement, pet: Pet, chosen: PetStatus | '') {
  const changes = { status: chosen || null }
  const changed = await change(card, pet, client => client.update(pet.id, changes, { ifStatus: pet.status }))
  if (changed) showChanged(changed, isolate(changed.name), chosen ? ` is ${chosen}.` : ' has no status.')
}

function openDialog(template: 'edit' | 'remove', { name }: Pet, act: (dialog: HTMLElement) => void) {
  // The browser returns the focus to the menu's button, now and after the dialog.
  document.querySelector<HTMLElement>(':popover-open')?.hidePopover()
  const dialog = copyTemplate(template) as HTMLDialogElement
  find(dialog, 'bdi').textContent = shortName(name)
  find(dialog, '.quiet').onclick = () => dialog.close()
  dialog.oninput = checkAgain
  dialog.onclose = () => dialog.remove()
  onSubmit(dialog, () => act(dialog))
  document.body.append(dialog)
  dialog.showModal()
}

function edit(pet: Pet) {
  openDialog('edit', pet, async dialog => {
    const typed = readFields('edit-')
    if (!typed) return
    // Only what the person has edited: another person may have changed the rest.
    const name = typed.name === shown?.name ? undefined : typed.name
    const categoryId = typed.categoryId === shown?.categoryId ? undefined : typed.categoryId
    const changed = await change(dialog, pet, client => client.update(pet.id, { name, categoryId }))
    if (changed) showChanged(changed, 'Changed ', isolate(changed.name), '.')
  })
  inputById('edit-name').value = pet.name
  inputById('edit-categoryId').value = String(pet.categoryId)
  const shown = readFields('edit-')
}

/** Only if the animal still has the status that the page shows: it may be sold meanwhile. */
function remove(pet: Pet) {
  openDialog('remove', pet, async dialog => {
    const removal = async (client: Pets) => {
      const removing = client.remove(pet.id, { ifStatus: pet.status })
      // Perhaps by an earlier attempt whose response was lost.
      await removing.catch(error => (error.code === 'pet_not_found' ? undefined : Promise.reject(error)))
      return pet
    }
    if (!(await change(dialog, pet, removal))) return
    const card = findCard(pet)
    const next = card?.nextElementSibling ?? card?.previousElementSibling ?? byId('heading')
    card?.remove()
    if (isUnfocused()) (next as HTMLElement).focus()
    if (!loading) count()
    say('Removed ', isolate(pet.name), '.')
  })
}

async function refresh() {
  const problem = byId('form-problem').textContent
  const isListed = await list(wantedStatus())
  // Unless another one has come meanwhile.
  if (isListed && byId('form-problem').textContent === problem) showProblem('form', '')
}

onSubmit(byId('welcome'), enter)
onSubmit(form, save)
form.addEventListener('input', checkAgain)
byId('save').addEventListener('click', event => {
  // The second click of a double click would submit the emptied form.
  if (event.detail > 1) event.preventDefault()
})
more.addEventListener('click', loadMore)
byId('refresh').addEventListener('click', refresh)
byId('filter').addEventListener('change', () => list(wantedStatus()))
pets.addEventListener('keydown', event => {
  const { target, key, ctrlKey, metaKey, altKey } = event
  const isChoosing = /^(Arrow.*|Home|End|Page.*|.)$/.test(key) && !ctrlKey && !metaKey && !altKey
  // Browsers without showPicker open the choices themselves.
  if (!isChoosing || !(target instanceof HTMLSelectElement) || !('showPicker' in target)) return
  // A closed select would choose, and so send, each status on the way to the wanted one.
  event.preventDefault()
  target.showPicker()
})
// A message is there until the next click.
addEventListener('click', () => say())
addEventListener('online', () => {
  if (!banner.hidden) find(banner, 'button').click()
})
addEventListener('popstate', () => {
  // The skip link changes only the hash.
  const isSkip = location.hash !== '' && readStatus() === status
  if (isInside() && !isSkip) open()
})
// A list begins with its first page, so the browser cannot find its old place.
history.scrollRestoration = 'manual'
if (matchMedia('(min-width: 60rem)').matches) byId('add').setAttribute('open', '')
if (session.key) {
  show('catalogue')
  open()
} else welcome('')
