import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContext, BrowserContextOptions, Page, Request } from 'playwright-core'
import { chromium } from 'playwright-core'
import { createPages } from '../../src/web/pages.ts'
import { chromium as findChromium } from '../support/debian.ts'
import { projectFolder, until } from '../support/process.ts'
import { type Service, startService } from '../support/service.ts'

/** No window, and no traffic of its own. */
const flags =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync'

/** Undefined if there is no browser: then its tests are skipped. */
export const chromiumPath = await findChromium()

export function launchChromium(...moreFlags: readonly string[]): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath ?? '', args: [...flags.split(' '), ...moreFlags] })
}

const pages = createPages()
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

/** Long enough for a page on a busy machine. */
const waitMs = 30_000

/** Chromium itself prints these lines about a response that the page handles, or about none. */
const expectedLine =
  /^Failed to load resource: (the server responded with a status of (400|401|403|404|409|429|503)|net::ERR_INTERNET_DISCONNECTED)/

type Visit = BrowserContextOptions & { readonly settings?: Parameters<typeof startService>[0] }

/** Opens a page of a new service with these settings and an empty store, with the checks of {@link visitAt}. */
export async function visit(
  { settings, ...look }: Visit,
  act: (page: Page, service: Service, screen: Screen) => Promise<void>,
): Promise<void> {
  await using service = await startService({ pages, ...settings })
  await visitAt(service.origin, look, (page, screen) => act(page, service, screen))
}

/** Contexts by look. A context is expensive, and each service has an origin of its own: visits share them. */
const contexts = new Map<string, Promise<BrowserContext>>()

function shareContext(look: BrowserContextOptions): Promise<BrowserContext> {
  const name = JSON.stringify(look)
  const permissions = ['clipboard-read', 'clipboard-write']
  const context = contexts.get(name) ?? browser.newContext({ ...look, permissions, reducedMotion: 'reduce' })
  contexts.set(name, context)
  return context
}

/** Afterwards the page must have printed and thrown nothing, broken no policy, and sent requests only to this origin. */
export async function visitAt(
  origin: string,
  look: BrowserContextOptions,
  act: (page: Page, screen: Screen) => Promise<void>,
): Promise<void> {
  const troubles: string[] = []
  const context = await shareContext(look)
  const page = await context.newPage()
  page.setDefaultTimeout(waitMs)
  page.on('pageerror', error => troubles.push(`thrown: ${error.message}`))
  page.on('console', message => {
    if (!expectedLine.test(message.text())) troubles.push(`${message.type()}: ${message.text()}`)
  })
  const checkOrigin = (request: Request) => {
    const url = new URL(request.url())
    if (url.origin !== origin && url.protocol !== 'data:') troubles.push(`asked: ${request.url()}`)
  }
  context.on('request', checkOrigin)
  try {
    await act(page, new Screen(page, origin))
    // A later service may get the same port.
    await page.evaluate('localStorage.clear()')
  } finally {
    for (const opened of context.pages()) await opened.close()
    context.off('request', checkOrigin)
    await context.setOffline(false)
  }
  expect(troubles).toEqual([])
}

const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** The rules that the page breaks, each with its elements. */
const violations = `axe.run({ resultTypes: ['violations'], preload: false }).then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ target }) => target.join(' ')).join(', ')))`

/** What a person does and sees on a page. */
class Screen {
  readonly #page: Page
  readonly #origin: string

  constructor(page: Page, origin: string) {
    this.#page = page
    this.#origin = origin
  }

  /** Opens a path of the service. */
  goTo = (path: string) => this.#page.goto(this.#origin + path)

  /** How many pixels the page is wider than its window. */
  async overflowPx(): Promise<number> {
    return Number(await this.#page.evaluate('document.documentElement.scrollWidth - innerWidth'))
  }

  /** axe finds nothing to object to in what is visible now. */
  async expectAccessible(): Promise<void> {
    if (await this.#page.evaluate("typeof axe === 'undefined'")) await this.#page.evaluate(`${axe}; undefined`)
    expect(await this.#page.evaluate(violations)).toEqual([])
  }

  /** Waits for an expression in the page. Playwright's own way evaluates text there, which the page's policy forbids. */
  async untilTrue(expression: string): Promise<void> {
    await until(expression, async () => (await this.#page.evaluate(expression)) || undefined, waitMs)
  }

  /** The id of the focused element, or else its text. */
  focused = () => this.#page.evaluate('document.activeElement.id || document.activeElement.textContent.trim()')
  click = (button: string) => this.#page.getByRole('button', { name: button }).click()
  says = (text: string) => this.#page.getByText(text).first().waitFor()
  scrollDown = () => this.#page.evaluate('scrollTo(0, document.body.scrollHeight)')
  filter = (name: string) => this.#page.locator('#filter').getByText(name, { exact: true }).click()

  /** Holds requests to these addresses until the returned function is called. */
  async hold(addresses: string): Promise<() => void> {
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    await this.#page.route(addresses, route => held.then(() => route.continue()))
    return release
  }

  /** Opens the catalogue and enters a key. */
  async enter(key: string): Promise<void> {
    await this.goTo('/')
    await this.#page.getByLabel('API key').fill(key)
    await this.click('Show the animals')
  }

  /** Opens the catalogue of a store with so many animals. */
  async enterStocked(service: Service, count: number): Promise<void> {
    await stock(service, count)
    await this.enter(service.key)
    await this.waitForCards(Math.min(count, 20))
  }

  /** Enters a key on the page that asks for one. */
  async typeKey(key: string): Promise<void> {
    await this.#page.getByLabel('API key').fill(key)
    await this.#page.keyboard.press('Enter')
  }

  /** The control that shows and changes the status of an animal. */
  statusOf = (name: string) => this.#page.getByLabel(`Status of ${name}`)
  /** What the page says about the last change. */
  said = () => this.#page.locator('#said').textContent()

  /** Chooses from the menu of an animal. */
  async choose(action: 'Edit' | 'Remove', name: string): Promise<void> {
    await this.click(`Edit or remove ${name}`)
    await this.#page.locator('.menu').getByRole('button', { name: action, exact: true }).click()
  }

  async addAnimal(name: string, categoryId: string, status?: string): Promise<void> {
    await this.#page.locator('#name').fill(name)
    await this.#page.getByLabel('Category number').fill(categoryId)
    if (status !== undefined) await this.#page.locator('#status').selectOption(status)
    await this.click('Add to the catalogue')
  }

  get cards() {
    return this.#page.locator('#pets > li')
  }

  async waitForCards(count: number): Promise<void> {
    await this.untilTrue(`document.querySelectorAll('#pets > li').length === ${count}`)
  }

  /** Takes a screenshot for the documents if PETSTORE_SCREENSHOTS=1. */
  async picture(name: string): Promise<void> {
    if (process.env['PETSTORE_SCREENSHOTS'] !== '1') return
    const picture = new Bun.Image(await this.#page.screenshot({ animations: 'disabled', caret: 'hide' }))
    const bytes = await picture.png({ palette: true, compressionLevel: 9 }).bytes()
    await Bun.write(join(projectFolder, 'docs/images', `${name}.png`), bytes)
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
