import { expect, test } from 'bun:test'
import { describeInBrowser, desktop, looks, phone, stock, visit } from './browser.ts'

describeInBrowser('the catalogue page', () => {
  test.each(looks)(
    'leads a new user from a wrong key to an added animal, found by filter and by paging, all readable (%s)',
    (_, options) =>
      visit(options, async (page, service, screen) => {
        await screen.enter('pets_mistyped')
        const { json } = await service.call('/v1/pets', { key: 'pets_mistyped' })
        await screen.shows('#key-problem', json.message)
        expect(await page.locator('#key').getAttribute('aria-invalid')).toBe('true')
        expect(await screen.focused()).toBe('key')
        await screen.expectAccessible()

        await screen.typeKey(service.key)
        await screen.shows('#notice')
        if (options.viewport?.width === 390) await page.getByText('Add an animal').click()
        await screen.addAnimal('Rex', '9223372036854775807', 'available')
        await screen.shows('#pets > li', 'No. 1 · Category 9223372036854775807')
        await stock(service, 44)
        await screen.click('Refresh')
        await screen.shows('#count', '20 shown, more to load')
        // Later pages are larger.
        await screen.scrollDown()
        await screen.waitForCards(45)
        expect(await page.locator('#count').textContent()).toBe('45 animals')

        await screen.filter('Sold')
        await screen.waitForCards(9)
        expect(new Set(await page.locator('.plain').allTextContents())).toEqual(new Set(['Sold']))
        expect(await screen.overflowPx()).toBe(0)
        await screen.filter('All')
        await screen.waitForCards(20)
        await screen.expectAccessible()
      }),
  )

  test('marks what is wrong with a new animal, puts it at the top, and keeps category and status for the next one', () =>
    visit(phone, async (page, service, screen) => {
      await screen.enterStocked(service, 25)
      await page.getByText('Add an animal').click()
      const cases = [
        [' \u3000', '7', 'name'],
        ['Rex', '', 'categoryId'],
        ['Rex', '1.5', 'categoryId'],
      ] as const
      for (const [name, categoryId, wrong] of cases) {
        await screen.addAnimal(name, categoryId)
        await screen.untilTrue(`document.querySelector('#new-pet :user-invalid')?.id === '${wrong}'`)
      }
      expect(await screen.overflowPx()).toBe(0)
      await screen.expectAccessible()
      await screen.addAnimal('Rex', '9223372036854775808')
      await screen.shows('#form-problem', 'too large')
      await screen.addAnimal('🐈'.repeat(1_001), '-09')
      await screen.shows('#form-problem', /^name /)

      await screen.addAnimal('Bella', ' -09 ', 'sold')
      await screen.shows('#done', 'Added Bella as No. 26. After a reload, it is at the end of the list.')
      expect(await screen.focused()).toBe('name')
      await page.keyboard.type('Max')
      await page.keyboard.press('Enter')
      await screen.shows('#done', 'No. 27')
      expect(await screen.cards.first().textContent()).toMatch(/Max.*No\. 27 · Category -9.*Sold/s)
      // Both are also at the end of the list: they are not shown twice.
      await screen.scrollDown()
      await screen.waitForCards(27)
    }))

  test('accepts no second animal, and loses no new card, while the network is slow', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 4)
      const releaseList = await screen.hold('**/v1/pets?status=sold')
      const releaseCreations = await screen.hold('**/v1/pets')
      await screen.filter('Sold')
      await screen.addAnimal('\u202eAda', '7', 'sold')
      await page.evaluate("document.getElementById('name').focus()")
      await page.keyboard.type('Bel')
      await page.keyboard.press('Enter')
      releaseCreations()
      await screen.shows('#done', 'No. 5')
      expect([await page.locator('#name').inputValue(), await screen.focused()]).toEqual(['', 'name'])
      expect(await page.locator('#done bdi').textContent()).toBe('\u202eAda')
      releaseList()
      await screen.waitForCards(2)
      expect(await screen.cards.first().innerText()).toMatch(/Ada.*New/s)
      expect((await service.call('/v1/pets')).json).toHaveLength(5)
    }))

  test('keeps filter and form in view, and shows the filter again after a reload and on the way back', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 100)
      await screen.filter('Available')
      await screen.untilTrue("location.search === '?status=available' && scrollY === 0")
      await screen.scrollDown()
      await screen.waitForCards(40)
      const inView = `['#filter', '#save'].every(part => {
        const { top, bottom } = document.querySelector(part).getBoundingClientRect()
        return top >= 0 && bottom <= innerHeight
      })`
      expect(await page.evaluate(inView)).toBe(true)
      // The old list stays until the new one is there.
      const isListed = (status: string) =>
        `location.search === '?status=${status}' && document.getElementById('filter-${status}').checked &&
        pets.ariaBusy === 'false' && pets.childElementCount === 20 && scrollY === 0`
      await page.reload()
      await screen.untilTrue(isListed('available'))
      await screen.filter('Sold')
      await screen.untilTrue(isListed('sold'))
      await page.goBack()
      await screen.untilTrue(isListed('available'))
    }))

  test.each(looks)('changes an animal, and removes it after a question, all readable (%s)', (_, options) =>
    visit(options, async (page, service, screen) => {
      const sent: string[] = []
      page.on('request', request => {
        const [, path] = request.url().split('/v1/pets')
        if (request.method() !== 'GET') sent.push(`${request.method()} ${path} ${request.postData() ?? ''}`.trim())
      })
      await screen.enterStocked(service, 6)
      await screen.filter('Available')
      await screen.waitForCards(3)
      await screen.statusOf('Rex').selectOption('sold')
      await screen.shows('#said', 'Rex is sold. The filter hides it after a reload.')
      expect(await screen.cards.first().locator('.plain').textContent()).toBe('Sold')
      await screen.filter('All')
      await screen.waitForCards(6)
      await screen.statusOf('Rex').selectOption('')
      await screen.shows('#said', 'Rex has no status.')
      await screen.click('Edit or remove Rex')
      await screen.expectAccessible()

      await screen.choose('Edit', 'Misty')
      await page.locator('#edit-name').fill(' ')
      await screen.click('Save')
      expect(await screen.focused()).toBe('edit-name')
      await screen.expectAccessible()
      expect(await screen.overflowPx()).toBe(0)
      const name = '<b>\u202eMax the Dog Who Was Given a Very Long Name'
      await page.locator('#edit-name').fill(name)
      await screen.click('Save')
      await screen.shows('#said', name)
      await screen.choose('Edit', '<b>')
      await page.locator('#edit-categoryId').fill('9223372036854775807')
      await screen.click('Save')
      await screen.shows('#pet-2', 'Category 9223372036854775807')
      expect(await page.locator('#pet-2 .name').textContent()).toBe(name)

      await screen.choose('Remove', 'Bruno')
      await page.getByRole('alertdialog', { name: 'Bruno' }).waitFor()
      expect(await screen.focused()).toBe('Cancel')
      await screen.expectAccessible()
      await page.locator('.danger').click()
      await screen.shows('#said', 'Bruno')
      expect(await screen.focused()).toBe('pet-4')
      expect(await page.locator('#count').textContent()).toBe('5 animals')
      expect(sent).toEqual([
        'PATCH /1?status=available {"status":"sold"}',
        'PATCH /1?status=sold {"status":null}',
        `PATCH /2 {"name":"${name}"}`,
        'PATCH /2 {"categoryId":9223372036854775807}',
        'DELETE /3?status=pending',
      ])
    }),
  )

  test('works with the keyboard alone', () =>
    visit(phone, async (page, service, screen) => {
      await stock(service, 21)
      const press = async (...keys: string[]) => {
        for (const key of keys) await page.keyboard.press(key)
      }
      await screen.goTo('/')
      expect(await screen.focused()).toBe('key')
      await page.keyboard.type(service.key)
      await press('Enter')
      await screen.waitForCards(20)
      expect(await screen.focused()).toBe('heading')
      await press('Tab', 'Tab', 'ArrowRight')
      await screen.waitForCards(9)
      await press('ArrowLeft')
      await screen.waitForCards(20)
      await press('Tab', 'Enter', 'Tab')
      await page.keyboard.type('Kim')
      await press('Tab')
      await page.keyboard.type('7')
      await press('Tab', 'ArrowDown', 'Tab', 'Enter')
      await screen.shows('#done', 'No. 22')
      expect(await screen.focused()).toBe('name')

      // An arrow key opens the choices, and only the last one is sent.
      const focusedLabel = () => page.evaluate('document.activeElement.ariaLabel')
      await press('Tab', 'Tab', 'Tab', 'Tab', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter')
      await screen.shows('#said', 'no status')
      expect(await focusedLabel()).toBe('Status of Kim')
      await press('Tab', 'Enter', 'Tab', 'Enter', 'Control+a')
      await page.keyboard.type('Tim')
      await press('Enter')
      await screen.shows('#said', 'Tim')
      expect(await focusedLabel()).toBe('Edit or remove Tim')
      await press('Enter', 'Tab', 'Tab', 'Enter', 'Shift+Tab', 'Enter')
      await screen.shows('#said', 'Tim')
      expect(await screen.focused()).toBe('pet-1')

      // The focus is on the button that loads more, and goes to the first animal that it loads.
      await page.locator('#more').focus()
      await screen.waitForCards(21)
      expect(await screen.focused()).toBe('pet-21')
    }))
})
