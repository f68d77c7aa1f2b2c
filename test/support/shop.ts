import { afterAll, beforeAll, beforeEach } from 'bun:test'
import type { Browser } from 'playwright-core'
import { createPages } from '../../src/web/pages.ts'
import { findChromium, launchChromium } from './chromium.ts'
import { type Service, startService } from './service.ts'

/** One browser for a file of tests, and an empty store with its pages for each of them. */
export interface Shop {
  readonly browser: Browser
  readonly service: Service
}

/** Undefined where there is no browser to be had: then its tests are skipped. */
export const chromium = await findChromium()

/** Opened and closed by the hooks of the file that calls it. */
export function openShop(): Shop {
  const pages = createPages()
  let browser: Browser | undefined
  let service: Service | undefined
  beforeAll(async () => {
    if (chromium !== undefined) browser = await launchChromium(chromium)
  })
  beforeEach(async () => {
    await service?.[Symbol.asyncDispose]()
    service = await startService({ pages })
  })
  afterAll(async () => {
    await browser?.close()
    await service?.[Symbol.asyncDispose]()
  })
  return {
    get browser() {
      if (!browser) throw new Error('the browser is opened before the first test')
      return browser
    },
    get service() {
      if (!service) throw new Error('the service is started before each test')
      return service
    },
  }
}
