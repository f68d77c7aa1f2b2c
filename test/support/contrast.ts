import type { Page } from 'playwright-core'

/** The computed colour of the first visible text, and the nearest background behind it that is not transparent. */
const colours = `selector => {
  const background = node => {
    const colour = getComputedStyle(node).backgroundColor
    if (colour !== 'rgba(0, 0, 0, 0)') return colour
    return node.parentElement ? background(node.parentElement) : 'rgb(255, 255, 255)'
  }
  const text = [...document.querySelectorAll(selector)].find(node => node.checkVisibility())
  return [getComputedStyle(text).color, background(text)]
}`

/** The contrast of a text with what is behind it, by WCAG 2: 4.5 is enough for text of any size. */
export async function contrastOf(page: Page, selector: string): Promise<number> {
  const found = await page.evaluate<string[]>(`(${colours})(${JSON.stringify(selector)})`)
  const [front = 0, back = 0] = found.map(luminance)
  return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05)
}

function luminance(colour: string): number {
  const channels = /^rgb\((\d+), (\d+), (\d+)\)$/.exec(colour)
  if (!channels) throw new Error(`Cannot read the colour ${colour}: expected an opaque one`)
  const [red = 0, green = 0, blue = 0] = channels.slice(1).map(Number).map(linear)
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function linear(channel: number): number {
  const share = channel / 255
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
}
