import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { addAnimal, cards, enter, filter, stock, waitForCards } from '../support/catalogue.ts'
import { contrastOf } from '../support/contrast.ts'
import { chromium, openShop } from '../support/shop.ts'
import { looks, overflowPx, phone, picture, until, visit } from '../support/visit.ts'

setDefaultTimeout(60_000)

const shop = openShop()

describe.skipIf(chromium === undefined)('the catalogue page', () => {
  test.each(looks)(
    'leads a new user from a wrong key to an added animal, found by filter and by paging (%s)',
    (look, options) =>
      visit(shop.browser, shop.service.origin, options, async page => {
        await enter(page, 'pets_mistyped')
        await page.getByText('The API key is not one of this service, or is mistyped').waitFor()
        expect(await page.locator('#key').getAttribute('aria-invalid')).toBe('true')
        expect(await page.evaluate('document.activeElement.id')).toBe('key')
        if (look === 'light, desktop') await picture(page, 'wrong-key')

        await page.getByLabel('API key').fill(shop.service.key)
        await page.keyboard.press('Enter')
        await page.getByText('No animals yet').waitFor()
        if (look === 'light, phone') await picture(page, 'empty')
        await page.getByRole('button', { name: 'Add the first animal' }).click()
        expect(await page.evaluate('document.activeElement.id')).toBe('name')

        await addAnimal(page, 'Rex', '9223372036854775807')
        await page.getByText('Added as No. 1. It is the last one in the list.').waitFor()
        expect(await cards(page).textContent()).toContain('No. 1 · Category 9223372036854775807')
        await stock(shop.service, 44)
        await page.getByRole('button', { name: 'Refresh' }).click()
        await page.getByText('Misty').first().waitFor()
        for (let shown = 20; shown < 45; shown += 20) {
          await page.evaluate('scrollTo(0, document.body.scrollHeight)')
          await until(page, `document.querySelectorAll('#pets > li').length > ${shown}`)
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
    visit(shop.browser, shop.service.origin, options, async page => {
      await stock(shop.service, 12)
      await enter(page, shop.service.key)
      await waitForCards(page, 12)
      if (look.endsWith('phone')) await page.getByText('Add an animal').click()
      await addAnimal(page, ' ', '1.5; "x"')
      const text = (id: string) => page.locator(`#${id}-problem`).textContent()
      await page.getByText('Cannot read name').waitFor()
      expect(await text('name')).toStartWith('Cannot read name " ": expected text of 1 to 1,000 characters')
      expect(await text('categoryId')).toStartWith(
        'Cannot read categoryId "1.5; \\"x\\"": expected a whole number',
      )
      expect([await text('status'), await text('form')]).toEqual(['', ''])
      expect(await page.evaluate('document.activeElement.id')).toBe('name')
      expect(await page.getByLabel('Category number').getAttribute('aria-invalid')).toBe('true')
      expect(await overflowPx(page)).toBe(0)
      if (look === 'light, desktop') await picture(page, 'form-errors')

      await addAnimal(page, 'Rex', '')
      await page.getByText('categoryId is missing: expected a whole number').waitFor()
      expect(await text('name')).toBe('')
      await addAnimal(page, 'Rex', ' -9223372036854775808 ', '')
      await page.getByText('Added as No. 13').waitFor()
      expect(await text('categoryId')).toBe('')
      expect(await cards(page).last().textContent()).toContain('Category -9223372036854775808')
      expect(await page.getByLabel('Name').inputValue()).toBe('')
    }),
  )

  test('works with the keyboard alone, and by a button where a browser watches no scrolling', () =>
    visit(shop.browser, shop.service.origin, phone, async page => {
      await stock(shop.service, 21)
      await page.addInitScript('delete window.IntersectionObserver')
      await page.goto('/')
      const press = async (...keys: string[]) => {
        for (const key of keys) await page.keyboard.press(key)
      }
      const focused = () =>
        page.evaluate('document.activeElement.id || document.activeElement.textContent.trim()')
      await press('Tab')
      expect(await focused()).toBe('Skip to the catalogue')
      expect(await page.evaluate("document.querySelector('.skip').getBoundingClientRect().left >= 0")).toBe(
        true,
      )
      await press('Enter', 'Tab')
      expect(await focused()).toBe('key')
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineWidth')).toBe('3px')
      await page.keyboard.type(shop.service.key)
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
      await page.getByText('Added as No. 22. It stands at the end of the list.').waitFor()
      expect(await focused()).toBe('name')
      await press('Tab', 'Tab', 'Tab', 'Tab', 'Tab')
      expect(await focused()).toBe('more')
      await press('Enter')
      await waitForCards(page, 22)
      expect(await focused()).toBe('pet-21')
      expect(await cards(page).last().textContent()).toMatch(/Kim\s+Pending/)
    }))

  test.each(looks)('has enough contrast everywhere (%s)', (_look, options) =>
    visit(shop.browser, shop.service.origin, options, async page => {
      await page.goto('/')
      const texts = ['h1', '.welcome > p', '.welcome label', '#key-hint', '#enter', 'nav a', '.brand']
      const readable = async (selectors: readonly string[]) => {
        for (const selector of selectors) {
          expect(await contrastOf(page, selector), selector).toBeGreaterThanOrEqual(4.5)
        }
      }
      await readable(texts)
      await stock(shop.service, 11)
      await enter(page, 'pets_wrong')
      await page.getByText('not accepted').waitFor()
      await readable(['#key-problem'])
      await enter(page, shop.service.key)
      await waitForCards(page, 11)
      const labels = ['available', 'pending', 'sold', ''].map(status => `.status[data-status="${status}"]`)
      await readable(['#heading', '#count', '.name', '.facts', '.badge', ...labels])
      await readable(['#filter span', '#filter :checked + span', '#refresh', 'summary h2'])
      for (const id of ['add', 'requests'])
        await page.evaluate(`document.getElementById('${id}').open = true`)
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
