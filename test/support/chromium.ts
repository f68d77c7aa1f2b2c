import { type Browser, chromium } from 'playwright-core'
import { program } from './debian.ts'

/** No window, and no traffic of its own. */
const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** The path of the system's Chromium; undefined if it is not installed. */
export function findChromium(): Promise<string | undefined> {
  return program('chromium', 'the browser tests', ['chromium', 'chromium-browser', 'google-chrome'])
}

export function launchChromium(executablePath: string, moreFlags: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath, args: [...flags, ...moreFlags] })
}
