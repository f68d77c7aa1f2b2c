import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { keepAnimals } from '../http/service.ts'
import { describeInBrowser, desktop, phone, visit } from './browser.ts'

afterEach(() => void setSystemTime())

describeInBrowser('the catalogue page', () => {
  test('keeps the list under a banner and the animal in the form while the service cannot be reached', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 3)
      await page.context().setOffline(true)
      await screen.addAnimal('Ada', '7', 'available')
      await screen.shows('#form-problem', 'The service cannot be reached')
      await screen.filter('Available')
      await screen.shows('#banner')
      await screen.waitForCards(3)
      expect(await page.getByRole('radio', { name: 'All' }).isChecked()).toBe(true)
      await screen.expectAccessible()
      await page.context().setOffline(false)
      await screen.click('Try again')
      await screen.waitForCards(2)
      expect(await page.locator('#banner').isVisible()).toBe(false)
      expect(await screen.focused()).toBe('heading')
      await screen.click('Add to the catalogue')
      await screen.shows('#done', 'No. 4')
      expect(await screen.cards.first().textContent()).toContain('Ada')
    }))

  test('has no controls that the key does not permit, once it knows, and forgets everything with the key', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 1)
      await screen.click('Change key')
      await page.getByLabel('Remember on this device').check()
      await screen.typeKey(await service.newKey({ permission: 'read-only' }))
      await screen.waitForCards(1)
      await screen.addAnimal('Rex', '7')
      await screen.shows('#read-only')
      expect([await page.locator('#new-pet').isVisible(), await screen.focused()]).toEqual([false, 'read-only'])
      await screen.choose('Remove', 'Rex')
      await page.locator('.danger').click()
      await screen.shows('#view-only')
      expect(await screen.focused()).toBe('view-only')
      expect(await page.locator('#pets :is(select, button):visible').count()).toBe(0)
      expect(await page.locator('.plain:visible').count()).toBe(1)
      await screen.expectAccessible()
      await screen.filter('Sold')
      await screen.shows('#notice', 'No animal is sold')
      await screen.click('Change key')
      await screen.typeKey(service.key)
      await screen.waitForCards(1)
      expect([new URL(page.url()).search, await page.locator('#name').inputValue()]).toEqual(['', ''])
      // The way back leads to no page of the other person, not even if the browser has stored one.
      await page.goBack()
      await screen.untilTrue("location.search === ''")
      await screen.waitForCards(1)
      const restored = "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"
      await page.evaluate(`sessionStorage.clear(); ${restored}`)
      await screen.shows('#welcome')
    }))

  test('after a change that failed, shows how the animal is now, and keeps what was typed', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 6)
      const statusNow = () => screen.statusOf('Rex').inputValue()
      await service.stores.pets.update(1n, { status: 'pending' })
      await screen.statusOf('Rex').focus()
      await screen.statusOf('Rex').selectOption('sold')
      await screen.shows('#said', 'Rex has another status now')
      expect([await statusNow(), await screen.focused()]).toEqual(['pending', 'pet-1'])
      // The animal is changed, but the response is lost on its way.
      await page.route(/pets.1/, async route => {
        await route.fetch()
        await route.fulfill({ status: 503, body: 'Bad' })
      })
      await screen.statusOf('Rex').selectOption('')
      await screen.shows('#said', 'Rex may have been changed')
      expect(await statusNow()).toBe('')

      await page.route(/pets.[12]/, route => route.fulfill({ status: 429, body: 'Slow down' }))
      await screen.statusOf('Rex').selectOption('sold')
      await screen.shows('#said', 'Too many requests')
      expect(await statusNow()).toBe('')
      await screen.choose('Edit', 'Misty')
      await page.locator('#edit-name').fill('Max')
      await screen.click('Save')
      await screen.shows('dialog .problem', 'Too many requests')
      await screen.expectAccessible()
      await page.unroute(/pets.[12]/)
      await service.stores.pets.remove(2n)
      await screen.click('Save')
      await screen.shows('#said', 'Misty was removed')
      await screen.waitForCards(5)
      expect(await screen.focused()).toBe('heading')
    }))

  test('keeps the key for the tab only, and asks for another when it has expired', () =>
    visit(desktop, async (page, service, screen) => {
      const expiresAt = new Date(Date.now() + 3_600_000)
      await screen.enter(await service.newKey({ expiresAt }))
      await screen.shows('#notice')
      await page.reload()
      await screen.shows('#notice')
      const other = await page.context().newPage()
      await other.goto(service.origin)
      await other.getByLabel('API key').waitFor()
      expect(await page.evaluate('localStorage.length + document.cookie.length')).toBe(0)
      setSystemTime(expiresAt)
      await screen.click('Refresh')
      await screen.shows('#key-problem', 'expired')
      expect(await page.evaluate('sessionStorage.length')).toBe(0)
      await screen.typeKey('schlüssel')
      expect(await page.locator('#key:user-invalid').count()).toBe(1)
    }))

  test('shows what failed in the middle of the list, and goes on from there, also if the server has another address', () =>
    visit({ ...phone, settings: { publicUrl: 'https://pets.example/shop/v1' } }, async (page, service, screen) => {
      const json = { code: 'store_unavailable', message: 'The store does not answer now', status: 503 }
      await page.route('**/v1/pets?*cursor=*', route => route.fulfill({ status: 503, json }), { times: 1 })
      await screen.enterStocked(service, 45)
      await screen.scrollDown()
      await screen.shows('#banner', json.message)
      expect(await screen.cards.count()).toBe(20)
      await screen.click('Try again')
      await screen.waitForCards(45)
    }))

  test('understands addresses and responses that are not its own', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 1)
      await screen.goTo('/?status=bogus&at=xyz&ref=mail')
      await screen.waitForCards(1)
      expect(new URL(page.url()).search).toBe('')
      const refreshWith = async (response: { status: number; headers?: Record<string, string>; body?: string }) => {
        await page.route('**/v1/pets', route => route.fulfill(response), { times: 1 })
        await screen.click('Refresh')
      }
      await refreshWith({ status: 302, headers: { location: '/login' } })
      await screen.shows('#banner', 'log in')
      await refreshWith({ status: 401, body: '<p>Over' })
      await screen.shows('#key-problem', 'not accepted')
    }))

  test('shows only the list that was asked for last', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 5)
      const releaseSold = await screen.hold('**/v1/pets?status=sold')
      await screen.filter('Sold')
      expect(await page.locator('#pets').getAttribute('aria-busy')).toBe('true')
      await screen.filter('Pending')
      await screen.waitForCards(1)
      releaseSold()
      await screen.untilTrue("performance.getEntriesByName(new URL('v1/pets?status=sold', location).href).length === 1")
      expect(await page.locator('.plain').allTextContents()).toEqual(['Pending'])
    }))

  test('shows names as text whatever they contain, and ids beyond 2^53 digit for digit', () =>
    visit(phone, async (page, service, screen) => {
      const hostile = [
        '<img src=x onerror="document.title=1"><script>document.title=1</script>',
        '{"id":9007199254740993} \\" 12345678901234567890',
        'א'.repeat(1_000),
        `e${'\u0301'.repeat(999)}`,
        'W'.repeat(40),
      ]
      const categoryId = 2n ** 63n - 1n
      const pets = hostile.map((name, index) => ({ id: 2n ** 53n + 1n + BigInt(index), name, categoryId }))
      await keepAnimals(service, pets)
      await screen.enter(service.key)
      await screen.shows('#pets > li', 'No. 9007199254740993 · Category 9223372036854775807')
      expect(await page.locator('.name').allTextContents()).toEqual(hostile)
      expect(await page.locator('#pets img, #pets script').count()).toBe(0)
      expect(await screen.overflowPx()).toBe(0)
    }))

  test('uses the Idempotency-Key again for the same animal after a failure, and another for another', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 1)
      const sent: string[] = []
      await page.route('**/v1/pets', async route => {
        sent.push(route.request().headers()['idempotency-key'] ?? '')
        // The animal is added, but the first two responses are lost on their way.
        const response = await route.fetch()
        return route.fulfill(sent.length <= 2 ? { status: 502 + sent.length, body: '<p>Bad' } : { response })
      })
      await screen.addAnimal('Rex', '7')
      await screen.shows('#form-problem', 'status 503')
      await screen.addAnimal('Rex', '8')
      await screen.shows('#form-problem', 'status 504')
      await screen.click('Add to the catalogue')
      await screen.shows('#done', 'No. 3')
      const [first, second, third] = sent
      expect(second).not.toBe(first)
      expect(third).toBe(second)
      expect((await service.call('/v1/pets')).json).toHaveLength(3)
    }))
})
