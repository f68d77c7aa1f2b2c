import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import {
  addAnimal,
  cards,
  chromiumPath,
  enter,
  filter,
  looks,
  openShop,
  overflowPx,
  phone,
  picture,
  stock,
  untilTrue,
  visit,
  waitForCards,
} from '../support/browser.ts'
import { testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const shop = openShop()

describe.skipIf(chromiumPath === undefined)('the catalogue page', () => {
  test.each(looks)(
    'leads a new user from a wrong key to an added animal, found by filter and by paging (%s)',
    (look, options) =>
      visit(shop, options, async (page, service) => {
        await enter(page, 'pets_mistyped')
        const { json } = await service.call('/v1/pets', { key: 'pets_mistyped' })
        await page.getByText(json.message).waitFor()
        expect(await page.locator('#key').getAttribute('aria-invalid')).toBe('true')
        expect(await page.evaluate('document.activeElement.id')).toBe('key')
        if (look === 'light, desktop') await picture(page, 'wrong-key')

        await page.getByLabel('API key').fill(service.key)
        await page.keyboard.press('Enter')
        await page.getByText('No animals yet').waitFor()
        if (look === 'light, phone') await picture(page, 'empty')
        await page.getByRole('button', { name: 'Add the first animal' }).click()
        expect(await page.evaluate('document.activeElement.id')).toBe('name')

        await addAnimal(page, 'Rex', '9223372036854775807')
        await page.getByText('Added as No. 1. It is the last one in the list.').waitFor()
        expect(await cards(page).textContent()).toContain('No. 1 · Category 9223372036854775807')
        await stock(service, 44)
        await page.getByRole('button', { name: 'Refresh' }).click()
        await page.getByText('Misty').first().waitFor()
        for (let shown = 20; shown < 45; shown += 20) {
          await page.evaluate('scrollTo(0, document.body.scrollHeight)')
          await untilTrue(page, `document.querySelectorAll('#pets > li').length > ${shown}`)
        }
        await waitForCards(page, 45)
        expect(await page.locator('#count').textContent()).toBe('45 animals')

        await filter(page, 'Sold')
        await waitForCards(page, 9)
        expect(new Set(await page.locator('.status').allTextContents())).toEqual(new Set(['Sold']))
        await filter(page, 'Available')
        await waitForCards(page, 19)
        expect(await cards(page).first().textContent()).toContain('Rex')
        expect(await overflowPx(page)).toBe(0)
        await page.evaluate('scrollTo(0, 0)')
        await filter(page, 'All')
        await page.getByText('No status').first().waitFor()
        if (look.endsWith('phone')) await page.getByText('Add an animal').click()
        const name = { 'light, desktop': 'light', 'dark, desktop': 'dark', 'dark, phone': 'phone-dark' }[look]
        await picture(page, `catalogue-${name ?? 'phone'}`)
      }),
  )

  test.each(looks)("shows the server's own messages beside the fields that they name (%s)", (look, options) =>
    visit(shop, options, async (page, service) => {
      await stock(service, 12)
      await enter(page, service.key)
      await waitForCards(page, 12)
      if (look.endsWith('phone')) await page.getByText('Add an animal').click()
      await addAnimal(page, ' ', '1.5; "x"')
      const text = (id: string) => page.locator(`#${id}-problem`).textContent()
      await page.getByText('name is blank').waitFor()
      const body = JSON.stringify({ name: ' ', categoryId: '1.5; "x"' })
      const { json } = await service.call('/v1/pets', { method: 'POST', body })
      expect(`${await text('name')}; ${await text('categoryId')}`).toBe(json.message)
      expect([await text('status'), await text('form')]).toEqual(['', ''])
      expect(await page.evaluate('document.activeElement.id')).toBe('name')
      expect(await page.getByLabel('Category number').getAttribute('aria-invalid')).toBe('true')
      expect(await overflowPx(page)).toBe(0)
      if (look === 'light, desktop') await picture(page, 'form-errors')

      await addAnimal(page, 'Rex', '')
      await page.getByText('categoryId is missing').waitFor()
      expect(await text('name')).toBe('')
      await addAnimal(page, 'Rex', ' -9223372036854775808 ', '')
      await page.getByText('Added as No. 13').waitFor()
      expect(await text('categoryId')).toBe('')
      expect(await cards(page).last().textContent()).toContain('Category -9223372036854775808')
      expect(await page.getByLabel('Name').inputValue()).toBe('')
    }),
  )

  test('works with the keyboard alone, and by a button where a browser watches no scrolling', () =>
    visit(shop, phone, async (page, service) => {
      await stock(service, 21)
      await page.addInitScript('delete window.IntersectionObserver')
      await page.goto('/')
      const press = async (...keys: string[]) => {
        for (const key of keys) await page.keyboard.press(key)
      }
      const focused = () => page.evaluate('document.activeElement.id || document.activeElement.textContent.trim()')
      await press('Tab')
      expect(await focused()).toBe('Skip to the catalogue')
      expect(await page.evaluate("document.querySelector('.skip').getBoundingClientRect().left >= 0")).toBe(true)
      await press('Enter', 'Tab')
      expect(await focused()).toBe('key')
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineWidth')).toBe('3px')
      await page.keyboard.type(service.key)
      await press('Enter')
      await waitForCards(page, 20)
      expect(await focused()).toBe('heading')

      await press('Tab', 'Tab', 'ArrowRight')
      await waitForCards(page, 9)
      await press('ArrowLeft')
      await waitForCards(page, 20)
      await press('Tab')
      expect(await focused()).toBe('Add an animal')
      await press('Enter', 'Tab')
      await page.keyboard.type('Kim')
      await press('Tab')
      await page.keyboard.type('7')
      await press('Tab', 'ArrowDown', 'Tab', 'Enter')
      await page.getByText('Added as No. 22. It is at the end of the list.').waitFor()
      expect(await focused()).toBe('name')
      await press('Tab', 'Tab', 'Tab', 'Tab', 'Tab')
      expect(await focused()).toBe('more')
      await press('Enter')
      await waitForCards(page, 22)
      expect(await focused()).toBe('pet-21')
      expect(await cards(page).last().textContent()).toMatch(/Kim\s+Pending/)
    }))

  test.each(looks)('has enough contrast everywhere (%s)', (_look, options) =>
    visit(shop, options, async (page, service) => {
      await page.goto('/')
      const texts = ['h1', '.welcome > p', '.welcome label', '#key-hint', '#enter', 'nav a', '.brand']
      const readable = async (selectors: readonly string[]) => {
        for (const selector of selectors) {
          expect(await contrastOf(page, selector), selector).toBeGreaterThanOrEqual(4.5)
        }
      }
      await readable(texts)
      await stock(service, 11)
      await enter(page, 'pets_wrong')
      await page.getByText('not accepted').waitFor()
      await readable(['#key-problem'])
      await enter(page, service.key)
      await waitForCards(page, 11)
      const labels = ['available', 'pending', 'sold', ''].map(status => `.status[data-status="${status}"]`)
      await readable(['#heading', '#count', '.name', '.facts', '.badge', ...labels])
      await readable(['#filter span', '#filter :checked + span', '#refresh', 'summary h2'])
      for (const id of ['add', 'requests']) await page.evaluate(`document.getElementById('${id}').open = true`)
      await readable(['#new-pet label', '#new-pet input', '#save', '#log b', '#log code', '#log button'])
      await addAnimal(page, '', '')
      await page.getByText('categoryId is missing').waitFor()
      await readable(['#name-problem'])
      await addAnimal(page, 'Kim', '3')
      await page.getByText('Added as').waitFor()
      await readable(['#done'])
    }),
  )
})

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
async function contrastOf(page: Page, selector: string): Promise<number> {
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
