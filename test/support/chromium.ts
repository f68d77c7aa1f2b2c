export { launchChromium } from './browser.ts'
export { chromium as findChromium } from './debian.ts'
