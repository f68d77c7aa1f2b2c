// For both pages: the API key in this browser, its input, the client, and small helpers.

import { PetstoreClient } from '../client/index.ts'

const keyName = 'petstore-key'
const tabStorage = openStorage('sessionStorage')
const deviceStorage = openStorage('localStorage')

/** A browser may block storage. */
function openStorage(kind: 'sessionStorage' | 'localStorage'): Storage | undefined {
  try {
    return window[kind]
  } catch {
    return undefined
  }
}

function store(value: string, storage = tabStorage) {
  try {
    storage?.setItem(keyName, value)
  } catch {
    // The storage is full: the key lasts as long as the page.
  }
}

const storages = [tabStorage, deviceStorage].filter(storage => storage !== undefined)

/** The key of this tab, or else of this device; '' if there is none that can be sent. */
function storedKey() {
  const key = storages.map(storage => storage.getItem(keyName)).find(Boolean) ?? ''
  return keyProblem(key) ? '' : key
}

export const session = {
  /** The key that the page uses. */
  key: '',
  /** Called after the key is forgotten. By default, nothing of this person remains on the page for the next one. */
  left: () => location.replace(location.pathname),
}

/** False after the key was changed, here or in another tab, or if it could not be stored. */
const isKeyStored = () => storedKey() === session.key

addEventListener('pageshow', ({ persisted }) => {
  if (persisted && !isKeyStored()) location.reload()
})
addEventListener('storage', ({ key }) => {
  // Another tab has forgotten or replaced the key of this device.
  if (session.key && [null, keyName].includes(key) && !isKeyStored()) session.left()
})

export function forgetKey() {
  for (const storage of storages) {
    // Another tab may have stored another key, which stays as it is.
    if (storage.getItem(keyName) === session.key) storage.removeItem(keyName)
  }
}

/** Relative to the page, which a proxy may serve under another path. Without user and password, which fetch refuses. */
export const resolveUrl = (path: string) => new URL(path, location.origin + location.pathname)

/** Without retries: the page shows each failure at once, and the person decides. TypeError for an invalid key. */
export function newClient(apiKey = session.key) {
  return new PetstoreClient({ baseUrl: resolveUrl('v1'), apiKey, retries: 0 })
}

session.key = storedKey()

/** Browsers hide the status and the address of a redirect. */
export const redirected = 'The service redirects requests. Reload this page: you may have to log in again.'

export const byId = (id: string) => document.getElementById(id) as HTMLElement
export const inputById = (id: string) => byId(id) as HTMLInputElement

export const keyInput = inputById('key')
byId('leave').addEventListener('click', () => {
  for (const storage of storages) storage.removeItem(keyName)
  session.left()
})
/** Uses the key in the form, or shows what is wrong with it and returns false. */
export function useTypedKey() {
  const typed = keyInput.value.trim()
  const problem = typed ? keyProblem(typed) : 'Enter a key'
  showProblem('key', problem)
  if (problem) keyInput.focus()
  else session.key = typed
  return !problem
}

function keyProblem(typed: string) {
  try {
    newClient(typed)
    return ''
  } catch {
    return 'A key has no spaces and no accents. Copy it again.'
  }
}

/** Stores the key as the form says, and empties the form. */
export function acceptKey() {
  store(session.key)
  if (inputById('remember').checked) store(session.key, deviceStorage)
  keyInput.value = ''
}

/** The problem is '' if there is none. */
export function showProblem(field: string, problem: string) {
  byId(`${field}-problem`).textContent = problem
  document.getElementById(field)?.setAttribute('aria-invalid', String(problem !== ''))
}

export function onSubmit(form: HTMLElement, act: () => unknown) {
  form.addEventListener('submit', event => {
    event.preventDefault()
    act()
  })
}
