// The catalogue. Text from the service is set as text, never as HTML.

import type { ListOptions, Pet, PetStatus, Pets } from '../../client/index.ts'
import { newIdempotencyKey, type PetstoreError } from '../../client/index.ts'
import * as site from '../site.ts'
import { byId, copyTemplate, find, inputById, onSubmit, session } from '../site.ts'

/** The first page is smaller, so that it is there sooner. */
const laterPagePets = 100
const pets = byId('pets')
const more = byId('more')
const banner = byId('banner')
const form = byId('new-pet')

/** The filter of the list on the page. */
let status = ''
/** Undefined after the last page. */
let next: ListOptions | undefined
/** Counts requests for pages: a response to an earlier one is not shown. */
let pageNumber = 0
/** The last creation, until it succeeds: a retry with its key adds nothing twice. */
let attempt = { text: '', idempotencyKey: '' }

const buildCard = (pet: Pet) => fillCard(copyTemplate('card'), pet)

const findCard = ({ id }: Pet) => document.getElementById(`pet-${id}`)

/** Shows an animal on a card, which may have shown it before. */
function fillCard(card: HTMLElement, pet: Pet) {
  const { id, name, categoryId, status = '' } = pet
  card.id = `pet-${id}`
  const portrait = find(card, '.portrait')
  portrait.textContent = /[\p{L}\p{N}]/u.exec(name)?.[0].toLocaleUpperCase() ?? '•'
  // The same category always has the same colour, and the next one a very different one.
  portrait.style.setProperty('--hue', String(Number(categoryId % 360n) * 137))
  find(card, '.name').textContent = name
  find(card, '[title=id]').textContent = `No. ${id}`
  find(card, '[title=categoryId]').textContent = `Category ${categoryId}`
  const select = find(card, 'select') as HTMLSelectElement
  select.value = status
  select.ariaLabel = `Status of ${name}`
  select.onchange = () => changeStatus(card, pet, select.value as PetStatus | '')
  const label = find(card, '.plain')
  label.textContent = select.selectedOptions[0]?.textContent ?? ''
  label.dataset['status'] = select.dataset['status'] = status
  const opener = find(card, '.opener') as HTMLButtonElement
  opener.ariaLabel = `Edit or remove ${name}`
  opener.popoverTargetElement = find(card, '.menu')
  find(card, '.edit').onclick = () => edit(pet)
  find(card, '.remove').onclick = () => remove(pet)
  return card
}

/** What went wrong, and what to do. */
function explain(error: PetstoreError) {
  // The client sends no number beyond 64 bits.
  if (error instanceof TypeError) return 'The category number is too large: use up to 18 digits'
  const { status, code, message, requestId } = error
  if (status === undefined) return 'The service cannot be reached. Check your connection, then try again.'
  if (status === 0) return site.redirected
  const isOurs = code !== 'unexpected_response'
  // The message of our service also says what to do.
  if (isOurs && status < 500) return message
  if (status === 401) return 'This key is not accepted'
  if (status === 429) return 'Too many requests. Wait a moment, then try again.'
  const id = requestId ? ` the request id ${requestId}` : ''
  const what = isOurs ? message : `Unexpected response (status ${status})`
  return `${what}. Try again. If it happens again, tell the operator${id}.`
}

/** Isolated, so that a name in another direction does not turn the sentence around. */
function isolate(name: string) {
  const isolated = document.createElement('bdi')
  isolated.textContent = name
  return isolated
}

function show(isInside: boolean) {
  byId('welcome').hidden = isInside
  byId('catalogue').hidden = byId('leave').hidden = !isInside
}

/** Sends one request. Returns a failure instead of throwing it. */
async function ask<T>(call: (pets: Pets) => Promise<T>): Promise<T | PetstoreError> {
  const result = await call(site.newClient().pets).catch((error: PetstoreError) => error)
  if (result instanceof Error && result.status === 401 && isInside()) {
    // Nothing of this person remains on the page for the next one.
    site.forgetKey()
    history.replaceState({ problem: explain(result) }, '')
    location.reload()
  }
  return result
}

async function enter() {
  site.useTypedKey()
  byId('enter').textContent = 'Checking the key…'
  const entered = await open()
  byId('enter').textContent = 'Show the animals'
  if (!entered) return
  site.acceptKey()
  show(true)
  byId('heading').focus({ preventScroll: true })
}

const isInside = () => byId('welcome').hidden

// The filter is in the address, so that reload and back find it again.

const readStatus = () => new URLSearchParams(location.search).get('status') ?? ''

const formatAddress = (wanted: string) => (wanted ? `?status=${wanted}` : location.pathname)

/** Shows the list that the address names. */
function open() {
  const named = readStatus()
  const known = document.getElementById(`filter-${named}`) ? named : ''
  history.replaceState(null, '', formatAddress(known))
  inputById(`filter-${known}`).checked = true
  return list()
}

const wantedStatus = () => document.querySelector<HTMLInputElement>('[name=filter]:checked')?.value ?? ''

/** Shows the first page of the list that the filter names. */
const list = () => load(wantedStatus())

/** Shows the first page of a list, or the next one. False if it failed, or another list has begun. */
async function load(wanted: string, following?: ListOptions): Promise<boolean> {
  const mine = ++pageNumber
  // They stay until the new list is there.
  const old = following ? [] : [...pets.children]
  if (!following) byId('form-problem').textContent = ''
  banner.hidden = true
  pets.ariaBusy = 'true'
  byId('count').textContent = 'Loading…'
  const filter = { status: (wanted || undefined) as PetStatus | undefined }
  const result = await ask(client => client.list(following ?? filter).page())
  if (mine !== pageNumber) return false
  pets.ariaBusy = 'false'
  if (result instanceof Error) {
    showUnloaded(result, () => load(wanted, following))
    return false
  }
  for (const card of old) card.remove()
  if (!following) scrollTo(0, 0)
  status = wanted
  if (wanted !== readStatus()) history.pushState(null, '', formatAddress(wanted))
  const { pets: found, nextCursor: cursor } = result
  append(found, cursor ? { ...filter, cursor, limit: laterPagePets } : undefined)
  return true
}

function showUnloaded(error: PetstoreError, again: () => void) {
  if (!isInside()) return site.askForKey(explain(error))
  inputById(`filter-${status}`).checked = true
  byId('count').textContent = ''
  find(banner, 'p').textContent = explain(error)
  find(banner, 'button').onclick = () => {
    byId('heading').focus({ preventScroll: true })
    again()
  }
  banner.hidden = false
  banner.scrollIntoView({ block: 'nearest' })
}

function append(found: readonly Pet[], following: ListOptions | undefined) {
  // A new animal is already at the top.
  const cards = found.filter(pet => !findCard(pet)).map(buildCard)
  pets.append(...cards)
  // The button may be hidden now.
  if (document.activeElement === more) cards[0]?.focus()
  next = following
  more.hidden = next === undefined
  count()
  // An observer reports changes only: observe again, in case the end of the list is still visible.
  observer.unobserve(more)
  observer.observe(more)
}

function count() {
  const shown = pets.childElementCount
  const what = next ? 'shown, more to load' : shown === 1 ? 'animal' : 'animals'
  byId('count').textContent = `${shown.toLocaleString('en')} ${what}`
  const empty = status ? `No animal is ${status}.` : 'No animals yet. Add the first one.'
  byId('notice').textContent = shown > 0 ? '' : empty
}

function loadMore() {
  if (next && pets.ariaBusy !== 'true') load(status, next)
}

const observer = new IntersectionObserver(
  entries => {
    if (banner.hidden && entries.some(entry => entry.isIntersecting)) loadMore()
  },
  { rootMargin: '240px' },
)

/** The focused element is gone, or was inert. */
const isUnfocused = () => document.activeElement === document.body

/** Sends a request from a form, a card or a dialog, which is inert meanwhile. */
async function send(from: HTMLElement, call: (pets: Pets) => Promise<Pet>) {
  const focused = document.activeElement as HTMLElement
  from.inert = true
  const result = await ask(call)
  from.inert = false
  if (isUnfocused()) focused.focus({ preventScroll: true })
  return result
}

const readFields = (prefix: '' | 'edit-') => ({
  name: inputById(`${prefix}name`).value,
  categoryId: BigInt(inputById(`${prefix}categoryId`).value),
})

async function add() {
  byId('done').textContent = ''
  byId('form-problem').textContent = ''
  const pet = { ...readFields(''), status: (inputById('status').value || undefined) as PetStatus | undefined }
  const text = `${pet.categoryId} ${pet.status} ${pet.name}`
  if (attempt.text !== text) attempt = { text, idempotencyKey: newIdempotencyKey() }
  const result = await send(form, client => client.create(pet, { idempotencyKey: attempt.idempotencyKey }))
  if (!(result instanceof Error)) showAdded(result)
  else if (result.code === 'read_only_key') forbid('read-only')
  else byId('form-problem').textContent = explain(result)
}

/** The category and the status stay: the next animal is often of the same kind. */
function showAdded(pet: Pet) {
  attempt = { text: '', idempotencyKey: '' }
  inputById('name').value = ''
  byId('name').focus({ preventScroll: true })
  const isListed = ['', pet.status].includes(wantedStatus())
  const where = isListed ? 'After a reload, it is at the end of the list.' : 'The filter hides it.'
  byId('done').replaceChildren('Added ', isolate(pet.name), ` as No. ${pet.id}. ${where}`)
  if (!isListed) return
  findCard(pet)?.remove()
  const card = buildCard(pet)
  card.classList.add('new')
  pets.prepend(card)
  count()
}

/** A key that may not do this gets a sentence in place of the controls. */
function forbid(sentence: 'read-only' | 'view-only') {
  byId('catalogue').classList.add(sentence)
  byId(sentence).focus({ preventScroll: true })
}

/** Shows and announces the outcome of a change. */
function say(...text: (string | Node)[]) {
  byId('said').replaceChildren(...text)
}

/** Failures after which the page is out of date, and how the sentence about the animal ends. */
const outdated: Readonly<Record<string, string>> = {
  status_changed: ' has another status now, so it was not changed.',
  pet_not_found: ' was removed meanwhile.',
  outcome_unknown: ' may have been changed: look at its status.',
}

/** Sends a change from a card or a dialog. Undefined if it failed. */
async function change(from: HTMLElement, pet: Pet, call: (pets: Pets) => Promise<Pet>): Promise<Pet | undefined> {
  const dialog = from.closest('dialog')
  const result = await send(from, call)
  if (result instanceof Error) return void showFailure(from, pet, result)
  dialog?.close()
  return result
}

async function showFailure(from: HTMLElement, pet: Pet, error: PetstoreError) {
  const dialog = from.closest('dialog')
  const ending = outdated[error.code]
  const mayNotChange = error.code === 'insufficient_permission'
  if (dialog?.open && !mayNotChange && !ending) {
    find(dialog, '.problem').textContent = explain(error)
    return
  }
  dialog?.close()
  if (!dialog) fillCard(from, pet)
  if (mayNotChange) return forbid('view-only')
  if (!ending) return say(explain(error))
  if ((await list()) && isUnfocused()) (findCard(pet) ?? byId('heading')).focus()
  say(isolate(pet.name), ending)
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
  find(dialog, 'bdi').textContent = name
  dialog.onclose = () => dialog.remove()
  onSubmit(find(dialog, 'form'), () => act(dialog))
  document.body.append(dialog)
  dialog.showModal()
}

function edit(pet: Pet) {
  openDialog('edit', pet, async dialog => {
    const typed = readFields('edit-')
    // Only what the person has edited: another person may have changed the rest.
    const name = typed.name === shown.name ? undefined : typed.name
    const categoryId = typed.categoryId === shown.categoryId ? undefined : typed.categoryId
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
    const removal = (client: Pets) => client.remove(pet.id, { ifStatus: pet.status }).then(() => pet)
    if (!(await change(dialog, pet, removal))) return
    const card = findCard(pet)
    const next = card?.nextElementSibling ?? card?.previousElementSibling ?? byId('heading')
    card?.remove()
    if (isUnfocused()) (next as HTMLElement).focus()
    count()
    say('Removed ', isolate(pet.name), '.')
  })
}

onSubmit(byId('welcome'), enter)
onSubmit(form, add)
more.addEventListener('click', loadMore)
byId('refresh').addEventListener('click', list)
byId('filter').addEventListener('change', list)
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
addEventListener('popstate', () => {
  // The skip link changes only the hash.
  if (isInside() && readStatus() !== wantedStatus()) open()
})
// A list begins with its first page, so the browser cannot find its old place.
history.scrollRestoration = 'manual'
if (matchMedia('(min-width: 60rem)').matches) byId('add').setAttribute('open', '')
show(session.key !== '')
if (session.key) open()
else site.askForKey(history.state?.problem)
