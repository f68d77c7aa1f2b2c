import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { createPages } from '../../src/web/pages.ts'
import { type Service, startService } from '../http/service.ts'
import { chromium as findChromium } from '../support/debian.ts'
import { hangMs, until } from '../support/process.ts'

/** No window, and no traffic of its own. */
const flags =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync'

/** Undefined if there is no browser: then its tests are skipped. */
export const chromiumPath = await findChromium()

export function launchChromium(...moreFlags: readonly string[]): Promise<Browser> {
  const args = [...flags.split(' '), ...moreFlags]
  return chromium.launch({ executablePath: chromiumPath ?? '', args, timeout: hangMs })
}

let browser: Browser

/** Tests that {@link visit} pages, with one browser for all of them. */
export function describeInBrowser(name: string, tests: () => void): void {
  describe.skipIf(chromiumPath === undefined)(name, () => {
    beforeAll(async () => {
      browser = await launchChromium()
    })
    afterAll(() => browser.close())
    tests()
  })
}

export const desktop = { viewport: { width: 1280, height: 640 } } as const
export const phone = { viewport: { width: 390, height: 844 }, hasTouch: true } as const

/** Both widths and both colour schemes. */
export const looks: readonly (readonly [string, BrowserContextOptions])[] = [
  ['light, desktop', { ...desktop, colorScheme: 'light' }],
  ['dark, phone', { ...phone, colorScheme: 'dark' }],
]

/** Chromium itself prints these lines about a response that the page handles, or about none. */
const expectedLine =
  /^Failed to load resource: (the server responded with a status of (4\d\d|50[34])|net::ERR_INTERNET_DISCONNECTED)/

/**
 * Opens a page of a new service with these settings and an empty store. Afterwards the page must have printed and thrown
 * nothing, broken no policy, and sent requests only to its own origin.
 */
export async function visit(
  { settings, ...look }: BrowserContextOptions & { readonly settings?: Parameters<typeof startService>[0] },
  act: (page: Page, service: Service, screen: Screen) => Promise<void>,
): Promise<void> {
  await using service = await startService({ pages: createPages(), ...settings })
  const permissions = ['clipboard-read', 'clipboard-write']
  await using context = await browser.newContext({ ...look, permissions, reducedMotion: 'reduce' })
  context.setDefaultTimeout(hangMs)
  const troubles: string[] = []
  context.on('weberror', failure => troubles.push(`thrown: ${failure.error().message}`))
  context.on('console', message => {
    if (!expectedLine.test(message.text())) troubles.push(`${message.type()}: ${message.text()}`)
  })
  context.on('request', request => {
    const { origin, protocol } = new URL(request.url())
    if (origin !== service.origin && protocol !== 'data:') troubles.push(`asked: ${request.url()}`)
  })
  const page = await context.newPage()
  await act(page, service, createScreen(page, service.origin))
  expect(troubles).toEqual([])
}

const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** The rules that the page breaks, each with its elements. */
const violations = `axe.run({ resultTypes: ['violations'], preload: false }).then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ target }) => target.join(' ')).join(', ')))`

type Screen = ReturnType<typeof createScreen>

/** What a person does and sees on a page. */
function createScreen(page: Page, origin: string) {
  /** Playwright's own way evaluates text in the page, which its policy forbids. */
  const untilTrue = (expression: string) =>
    until(expression, async () => (await page.evaluate(expression)) || undefined)
  const click = (button: string) => page.getByRole('button', { name: button }).click()
  const goTo = (path: string) => page.goto(origin + path)
  const waitForCards = (count: number) => untilTrue(`document.querySelectorAll('#pets > li').length === ${count}`)
  const typeKey = async (key: string) => {
    await page.getByLabel('API key').fill(key)
    await page.keyboard.press('Enter')
  }
  /** Opens the catalogue and enters a key. */
  const enter = async (key: string) => {
    await goTo('/')
    await typeKey(key)
  }

  return {
    ...{ untilTrue, click, goTo, waitForCards, typeKey, enter },
    cards: page.locator('#pets > li'),
    /** The control that shows and changes the status of an animal. */
    statusOf: (name: string) => page.getByLabel(`Status of ${name}`),
    /** Waits until an element is visible, and has this text in it. */
    shows: (selector: string, text: string | RegExp = '') => page.locator(selector, { hasText: text }).waitFor(),
    /** The id of the focused element, or else its text. */
    focused: () => page.evaluate('document.activeElement.id || document.activeElement.textContent.trim()'),
    scrollDown: () => page.evaluate('scrollTo(0, document.body.scrollHeight)'),
    filter: (name: string) => page.locator('#filter').getByText(name, { exact: true }).click(),

    /** How many pixels the page is wider than its window. */
    overflowPx: () => page.evaluate('document.documentElement.scrollWidth - innerWidth'),

    /** axe finds nothing to object to in what is visible now. */
    async expectAccessible() {
      if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(`${axe}; undefined`)
      expect(await page.evaluate(violations)).toEqual([])
    },

    /** Holds requests to these addresses until the returned function is called. */
    async hold(addresses: string) {
      const { promise: held, resolve: release } = Promise.withResolvers<void>()
      await page.route(addresses, route => held.then(() => route.continue()))
      return release
    },

    /** Opens the catalogue of a store with so many animals. */
    async enterStocked(service: Service, count: number) {
      await stock(service, count)
      await enter(service.key)
      await waitForCards(Math.min(count, 20))
    },

    /** Chooses from the menu of an animal. */
    async choose(action: 'Edit' | 'Remove', name: string) {
      await click(`Edit or remove ${name}`)
      await page.locator('.menu').getByRole('button', { name: action, exact: true }).click()
    },

    async addAnimal(name: string, categoryId: string, status?: string) {
      await page.locator('#name').fill(name)
      await page.locator('#categoryId').fill(categoryId)
      if (status !== undefined) await page.locator('#status').selectOption(status)
      await click('Add to the catalogue')
    },
  }
}

const names = ['Rex', 'Misty', 'Bruno', 'Kiwi', 'Shadow', 'Luna', 'Pepper', 'Oscar', 'Nala', 'Biscuit', 'Coco']
const statuses = ['available', 'available', 'pending', 'sold', undefined] as const

/** Adds animals of every status: of 5, 2 are available, 1 pending, 1 sold, and 1 has none. */
export async function stock({ stores }: Service, count: number): Promise<void> {
  for (let number = 0; number < count; number++) {
    const status = statuses[number % 5]
    const pet = { name: names[number % 11] ?? '', categoryId: BigInt(3 + (number % 4)) }
    await stores.pets.create({ ...pet, ...(status && { status }) })
  }
}
