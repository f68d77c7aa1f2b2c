// @ts-check
// The API key in this browser, for both pages: in this tab, and on this device if the person wants that.

const name = 'petstore-key'
export const tabStorage = storageOf('sessionStorage')
const deviceStorage = storageOf('localStorage')

/**
 * A browser may forbid it: the key then lasts as long as the page.
 * @param {'sessionStorage' | 'localStorage'} kind
 */
function storageOf(kind) {
  try {
    return window[kind]
  } catch {
    return undefined
  }
}

/** '' if there is none. */
export const storedKey = () => tabStorage?.getItem(name) ?? deviceStorage?.getItem(name) ?? ''

/**
 * @param {string} key
 * @param {boolean} onDevice
 */
export function storeKey(key, onDevice) {
  tabStorage?.setItem(name, key)
  if (onDevice) deviceStorage?.setItem(name, key)
}

export function forgetKey() {
  tabStorage?.removeItem(name)
  deviceStorage?.removeItem(name)
}
