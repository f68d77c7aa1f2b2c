import { expect } from 'bun:test'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { projectFolder } from './process.ts'

export const desktop = { viewport: { width: 1280, height: 760 } } as const
export const phone = { viewport: { width: 390, height: 844 }, hasTouch: true } as const

/** Each width in each scheme. */
export const looks: readonly (readonly [string, BrowserContextOptions])[] = [
  ['light, desktop', { ...desktop, colorScheme: 'light' }],
  ['dark, desktop', { ...desktop, colorScheme: 'dark' }],
  ['light, phone', { ...phone, colorScheme: 'light' }],
  ['dark, phone', { ...phone, colorScheme: 'dark' }],
]

const pictureBytesMax = 60_000

/** What Chromium itself prints about an answer that the page handles, or about no answer. */
const expectedLine =
  /^Failed to load resource: (the server responded with a status of (400|401|403|503)|net::ERR_INTERNET_DISCONNECTED)/

/**
 * Opens pages as a person with an empty browser does. Afterwards nothing may have been printed, thrown or refused by
 * the policy of a page, and nobody but the service may have been asked for anything.
 */
export async function visit(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions,
  act: (page: Page) => Promise<void>,
): Promise<void> {
  const troubles: string[] = []
  const context = await browser.newContext({ ...options, baseURL: origin, reducedMotion: 'reduce' })
  try {
    const page = await context.newPage()
    page.setDefaultTimeout(10_000)
    page.on('pageerror', error => troubles.push(`thrown: ${error.message}`))
    page.on('console', message => {
      if (!expectedLine.test(message.text())) troubles.push(`${message.type()}: ${message.text()}`)
    })
    context.on('request', request => {
      const url = new URL(request.url())
      if (url.origin !== origin && url.protocol !== 'data:') troubles.push(`asked: ${request.url()}`)
    })
    await act(page)
  } finally {
    await context.close()
  }
  expect(troubles).toEqual([])
}

/** Takes a picture for the documents, where PETSTORE_SCREENSHOTS=1 asks for them. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env['PETSTORE_SCREENSHOTS'] !== '1') return
  const bytes = await page.screenshot({ animations: 'disabled', caret: 'hide' })
  const small = new Bun.Image(bytes).png({ palette: true, compressionLevel: 9 })
  const picture = bytes.length > pictureBytesMax ? await small.bytes() : bytes
  await Bun.write(join(projectFolder, 'docs/images', `${name}.png`), picture)
}

/** By how many pixels the page is wider than its window. */
export async function overflowPx(page: Page): Promise<number> {
  return Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'))
}

/** Waits for an expression in the page. Playwright's own way evaluates text inside the page, which its policy forbids. */
export async function until(page: Page, expression: string): Promise<void> {
  const deadline = Date.now() + 10_000
  while (!(await page.evaluate(expression))) {
    if (Date.now() > deadline) throw new Error(`Did not come true in time: ${expression}`)
    await Bun.sleep(25)
  }
}
