// @ts-check
// For both pages: the API key in this browser, its input, and small helpers.

const keyName = 'petstore-key'
/** An animal that the catalogue has not added yet. */
export const draftName = 'petstore-draft'
const copiedMs = 2_000
export const tabStorage = storageOf('sessionStorage')
const deviceStorage = storageOf('localStorage')

/**
 * A browser may block storage: the key then lasts as long as the page.
 * @param {'sessionStorage' | 'localStorage'} kind
 */
function storageOf(kind) {
  try {
    return window[kind]
  } catch {
    return undefined
  }
}

/** The key of this tab, or else of this device; '' if there is none. */
export const storedKey = () => tabStorage?.getItem(keyName) ?? deviceStorage?.getItem(keyName) ?? ''

/**
 * @param {string} key
 * @param {boolean} onDevice
 */
function storeKey(key, onDevice) {
  try {
    tabStorage?.setItem(keyName, key)
    if (onDevice) deviceStorage?.setItem(keyName, key)
  } catch {
    // The storage is full: the key lasts as long as the page.
  }
}

/**
 * Another tab may have stored another key, which stays.
 * @param {string} refused
 */
export function forgetKey(refused) {
  for (const storage of [tabStorage, deviceStorage]) {
    if (storage?.getItem(keyName) === refused) storage.removeItem(keyName)
  }
}

/** Reloads the page, so that nothing of this person remains for the next one, on either page. */
function leave() {
  for (const name of [keyName, draftName]) tabStorage?.removeItem(name)
  deviceStorage?.removeItem(keyName)
  location.replace(location.pathname)
}

/**
 * Relative to the page, which a proxy may serve under another path. Without the user and password of the page's address,
 * which fetch refuses.
 * @param {string} path
 */
export const urlOf = path => new URL(path, location.origin + location.pathname)

/** @param {string} id */
export function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id))
}

/** @param {string} id */
export function inputOf(id) {
  return /** @type {HTMLInputElement} */ (byId(id))
}

export const keyInput = inputOf('key')
byId('leave').addEventListener('click', leave)
byId('reveal').addEventListener('click', () => reveal(keyInput.type === 'password'))

/** @param {boolean} visible */
function reveal(visible) {
  const action = visible ? 'Hide' : 'Show'
  keyInput.type = visible ? 'text' : 'password'
  byId('reveal').textContent = action
  byId('reveal').ariaLabel = `${action} the key`
}

/** @param {string} typed */
export function keyProblem(typed) {
  if (!typed) return 'Enter a key'
  return /^[\x21-\x7e]+$/.test(typed) ? '' : 'A key has no spaces and no accents. Copy it again.'
}

/**
 * Stores a key as the form says, and empties the form.
 * @param {string} key
 */
export function acceptKey(key) {
  storeKey(key, inputOf('remember').checked)
  keyInput.value = ''
  reveal(false)
}

/**
 * @param {HTMLElement} form
 * @param {() => unknown} act
 */
export function onSubmit(form, act) {
  form.addEventListener('submit', event => {
    event.preventDefault()
    act()
  })
}

/**
 * @param {HTMLElement} code
 * @param {HTMLElement} button
 */
export async function copy(code, button) {
  const label = button.ariaLabel
  try {
    await navigator.clipboard.writeText(code.textContent ?? '')
    button.textContent = 'Copied'
  } catch {
    // There is no clipboard on plain HTTP.
    getSelection()?.selectAllChildren(code)
    button.textContent = 'Selected'
  }
  button.ariaLabel = null
  setTimeout(() => {
    button.textContent = 'Copy'
    button.ariaLabel = label
  }, copiedMs)
}

/** @param {string} text */
export const shellQuoted = text => `'${text.replaceAll("'", `'\\''`)}'`
