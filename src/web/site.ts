// For both pages: the API key in this browser, its input, the client, and small helpers.

import { PetstoreClient } from '../client/index.ts'

const keyName = 'petstore-key'
/** Of this tab and of this device. A browser may block both: then the key lasts as long as the page. */
function openStorages() {
  try {
    return [sessionStorage, localStorage]
  } catch {
    return []
  }
}

const storages = openStorages()

const storedKey = () => storages.map(storage => storage.getItem(keyName)).find(Boolean) ?? ''

export const session = {
  /** The key that the page uses; '' if there is none. */
  key: storedKey(),
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

/** Without retries: the page shows each failure at once, and the person decides. */
export const newClient = () => new PetstoreClient({ baseUrl: resolveUrl('v1'), apiKey: session.key, retries: 0 })

/** Browsers hide the status and the address of a redirect. */
export const redirected = 'The service redirects requests. Reload this page: you may have to log in again.'

export const byId = (id: string) => document.getElementById(id) as HTMLElement
export const inputById = (id: string) => byId(id) as HTMLInputElement
export const find = (within: Element, selector: string) => within.querySelector(selector) as HTMLElement
export const copyTemplate = (id: string) =>
  (byId(id) as HTMLTemplateElement).content.firstElementChild?.cloneNode(true) as HTMLElement

const keyInput = inputById('key')
byId('leave').addEventListener('click', () => {
  for (const storage of storages) storage.removeItem(keyName)
  session.left()
})

/** Shows what is wrong with the key, or '', and waits for another. */
export function askForKey(problem = '') {
  byId('key-problem').textContent = problem
  keyInput.ariaInvalid = String(problem !== '')
  keyInput.focus()
}

export function useTypedKey() {
  session.key = keyInput.value.trim()
}

/** Stores the key as the form says, and empties the form. */
export function acceptKey() {
  storages[inputById('remember').checked ? 1 : 0]?.setItem(keyName, session.key)
  keyInput.value = ''
}

export function onSubmit(form: HTMLElement, act: () => unknown) {
  form.addEventListener('submit', event => {
    event.preventDefault()
    // While it sends, a second Enter may still arrive.
    if (!form.closest('[inert]')) act()
  })
}
