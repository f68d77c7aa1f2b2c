import { expect, test } from 'bun:test'
import { describeInBrowser, looks, phone, stock, visit } from '../support/browser.ts'

describeInBrowser('the catalogue page', () => {
  test.each(looks)(
    'leads a new user from a wrong key to an added animal, found by filter and by paging, all readable (%s)',
    (look, options) =>
      visit(options, async (page, service, screen) => {
        await screen.enter('pets_mistyped')
        const { json } = await service.call('/v1/pets', { key: 'pets_mistyped' })
        await page.getByText(json.message).waitFor()
        expect(await page.locator('#key').getAttribute('aria-invalid')).toBe('true')
        expect(await screen.focused()).toBe('key')
        await screen.expectAccessible()
        if (look === 'light, desktop') await screen.picture('wrong-key')

        await screen.typeKey(service.key)
        await screen.says('No animals yet')
        if (look === 'light, phone') await screen.picture('empty')
        await screen.click('Add the first animal')
        expect(await screen.focused()).toBe('name')

        await screen.addAnimal('Rex', '9223372036854775807')
        await screen.says('Added as No. 1. It is the last one in the list.')
        expect(await screen.cards.textContent()).toContain('No. 1 · Category 9223372036854775807')
        await stock(service, 44)
        await screen.click('Refresh')
        await screen.says('Misty')
        for (let shown = 20; shown < 45; shown += 20) {
          await screen.scrollDown()
          await screen.untilTrue(`document.querySelectorAll('#pets > li').length > ${shown}`)
        }
        await screen.waitForCards(45)
        expect(await page.locator('#count').textContent()).toBe('45 animals')

        await screen.filter('Sold')
        await screen.waitForCards(9)
        expect(new Set(await page.locator('.status').allTextContents())).toEqual(new Set(['Sold']))
        await screen.filter('Available')
        await screen.waitForCards(19)
        expect(await screen.cards.first().textContent()).toContain('Rex')
        expect(await screen.overflowPx()).toBe(0)
        await page.evaluate('scrollTo(0, 0)')
        await screen.filter('All')
        await screen.says('No status')
        await screen.expectAccessible()
        if (look.endsWith('phone')) await page.getByText('Add an animal').click()
        const name = { 'light, desktop': 'light', 'dark, desktop': 'dark', 'dark, phone': 'phone-dark' }[look]
        await screen.picture(`catalogue-${name ?? 'phone'}`)
      }),
  )

  test.each(looks)("shows the server's own messages beside the fields that they name (%s)", (look, options) =>
    visit(options, async (page, service, screen) => {
      await screen.enterStocked(service, 12)
      if (look.endsWith('phone')) await page.getByText('Add an animal').click()
      await screen.addAnimal(' ', '1.5; "x"')
      const text = (id: string) => page.locator(`#${id}-problem`).textContent()
      await screen.says('name is blank')
      const body = JSON.stringify({ name: ' ', categoryId: '1.5; "x"' })
      const { json } = await service.call('/v1/pets', { method: 'POST', body })
      expect(`${await text('name')}; ${await text('categoryId')}`).toBe(json.message)
      expect([await text('status'), await text('form')]).toEqual(['', ''])
      expect(await screen.focused()).toBe('name')
      expect(await page.getByLabel('Category number').getAttribute('aria-invalid')).toBe('true')
      expect(await screen.overflowPx()).toBe(0)
      await screen.expectAccessible()
      if (look === 'light, desktop') await screen.picture('form-errors')

      await screen.addAnimal('Rex', '')
      await screen.says('categoryId is missing')
      expect(await text('name')).toBe('')
      await screen.addAnimal('Rex', ' -9223372036854775808 ', '')
      await screen.says('Added as No. 13')
      await page.evaluate("document.getElementById('requests').open = true")
      await screen.expectAccessible()
      expect(await text('categoryId')).toBe('')
      expect(await screen.cards.last().textContent()).toContain('Category -9223372036854775808')
      expect(await page.getByLabel('Name').inputValue()).toBe('')
    }),
  )

  test('works with the keyboard alone, and by a button where a browser watches no scrolling', () =>
    visit(phone, async (page, service, screen) => {
      await stock(service, 21)
      await page.addInitScript('delete window.IntersectionObserver')
      await page.goto('/')
      const press = async (...keys: string[]) => {
        for (const key of keys) await page.keyboard.press(key)
      }
      await press('Tab')
      expect(await screen.focused()).toBe('Skip to the catalogue')
      expect(await page.evaluate("document.querySelector('.skip').getBoundingClientRect().left >= 0")).toBe(true)
      await press('Enter', 'Tab')
      expect(await screen.focused()).toBe('key')
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineWidth')).toBe('3px')
      await page.keyboard.type(service.key)
      await press('Enter')
      await screen.waitForCards(20)
      expect(await screen.focused()).toBe('heading')

      await press('Tab', 'Tab', 'ArrowRight')
      await screen.waitForCards(9)
      await press('ArrowLeft')
      await screen.waitForCards(20)
      await press('Tab')
      expect(await screen.focused()).toBe('Add an animal')
      await press('Enter', 'Tab')
      await page.keyboard.type('Kim')
      await press('Tab')
      await page.keyboard.type('7')
      await press('Tab', 'ArrowDown', 'Tab', 'Enter')
      await screen.says('Added as No. 22. It is at the end of the list.')
      expect(await screen.focused()).toBe('name')
      await press('Tab', 'Tab', 'Tab', 'Tab', 'Tab')
      expect(await screen.focused()).toBe('more')
      await press('Enter')
      await screen.waitForCards(22)
      expect(await screen.focused()).toBe('pet-21')
      expect(await screen.cards.last().textContent()).toMatch(/Kim\s+Pending/)
    }))
})
