export { findChromium, launchChromium } from './browser.ts'
