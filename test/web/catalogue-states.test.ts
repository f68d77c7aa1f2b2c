import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { addAnimal, cards, curlLines, enter, filter, stock, waitForCards } from '../support/catalogue.ts'
import { chromium, openShop } from '../support/shop.ts'
import { desktop, phone, picture, until, visit } from '../support/visit.ts'

setDefaultTimeout(60_000)

const shop = openShop()

describe.skipIf(chromium === undefined)('the states of the catalogue page', () => {
  test('says what to do offline, keeps what was entered, and goes on when the network is back', () =>
    visit(shop.browser, shop.service.origin, desktop, async page => {
      await stock(shop.service, 3)
      await enter(page, shop.service.key)
      await waitForCards(page, 3)
      await page.context().setOffline(true)
      await addAnimal(page, 'Ada', '7', 'available')
      await page.locator('#form-problem').getByText('The service cannot be reached').waitFor()
      expect(await page.getByLabel('Name').inputValue()).toBe('Ada')
      await filter(page, 'Available')
      await page.locator('#notice').getByText('The service cannot be reached').waitFor()
      await picture(page, 'offline')
      await page.context().setOffline(false)
      await waitForCards(page, 2)
      await page.getByRole('button', { name: 'Add to the catalogue' }).click()
      await page.getByText('Added as No. 4').waitFor()
      const [first, second] = (await curlLines(page)).filter(line => line.includes('Idempotency-Key'))
      expect(first).toBe(second ?? '')
      expect(await cards(page).last().textContent()).toContain('Ada')
    }))

  test('tells a person with a read-only key what to do, and keeps the animal for the other key', () =>
    visit(shop.browser, shop.service.origin, desktop, async page => {
      await enter(page, await shop.service.newKey({ permission: 'read-only' }))
      await addAnimal(page, 'Rex', '7')
      await page.getByText('This key may only read').waitFor()
      await page.getByRole('button', { name: 'Change key' }).click()
      await page.getByLabel('API key').fill(shop.service.key)
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Add to the catalogue' }).click()
      await page.getByText('Added as No. 1').waitFor()
    }))

  test('keeps the key for the tab only, and asks for another when it has expired', () =>
    visit(shop.browser, shop.service.origin, desktop, async page => {
      const key = await shop.service.newKey({ expiresAt: new Date(Date.now() + 3_000) })
      await enter(page, key)
      await page.getByText('No animals yet').waitFor()
      await page.reload()
      await page.getByText('No animals yet').waitFor()
      const other = await page.context().newPage()
      await other.goto('/')
      await other.getByLabel('API key').waitFor()
      expect(await page.evaluate('localStorage.length + document.cookie.length')).toBe(0)
      await Bun.sleep(3_000)
      await page.getByRole('button', { name: 'Refresh' }).click()
      await page.getByText('This key is not accepted').waitFor()
      expect(await page.evaluate('sessionStorage.length')).toBe(0)
      await page.getByLabel('API key').fill('schlüssel')
      await page.keyboard.press('Enter')
      await page.getByText('A key has no spaces and no accents').waitFor()
    }))

  test('shows what failed in the middle of the list, and goes on from there', () =>
    visit(shop.browser, shop.service.origin, phone, async page => {
      await stock(shop.service, 45)
      let failures = 1
      await page.route('**/v1/pets?*cursor=*', async route => {
        const body = '{"code":"store_unavailable","message":"The store does not answer now","status":503}'
        if (failures-- > 0) return route.fulfill({ status: 503, contentType: 'application/json', body })
        return route.continue()
      })
      await enter(page, shop.service.key)
      await waitForCards(page, 20)
      await page.evaluate('scrollTo(0, document.body.scrollHeight)')
      await page.getByText('The store does not answer now').waitFor()
      expect(await cards(page).count()).toBe(20)
      await page.getByRole('button', { name: 'Try again' }).click()
      await waitForCards(page, 40)
    }))

  test('shows placeholders while it waits, and only the list that was asked for last', () =>
    visit(shop.browser, shop.service.origin, desktop, async page => {
      await stock(shop.service, 5)
      await enter(page, shop.service.key)
      await waitForCards(page, 5)
      let letGo = () => {}
      const held = new Promise<void>(resolve => {
        letGo = resolve
      })
      await page.route('**/v1/pets?status=sold', async route => {
        await held
        await route.continue()
      })
      await filter(page, 'Sold')
      await page.locator('.skeleton').first().waitFor()
      expect(await page.locator('#pets').getAttribute('aria-busy')).toBe('true')
      await filter(page, 'Pending')
      await waitForCards(page, 1)
      letGo()
      await until(page, "document.querySelectorAll('#log > li').length === 3")
      expect(await page.locator('.status').allTextContents()).toEqual(['Pending'])
    }))
})
