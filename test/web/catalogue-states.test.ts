import { expect, setSystemTime, test } from 'bun:test'
import { until } from '../support/process.ts'
import { keepAnimals } from '../support/service.ts'
import { describeInBrowser, desktop, phone, visit } from './browser.ts'

describeInBrowser('the catalogue page', () => {
  test('keeps the list under a banner and the animal in the form while the service cannot be reached', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 3)
      await page.context().setOffline(true)
      await screen.addAnimal('Ada', '7', 'available')
      await page.locator('#form-problem').getByText('The service cannot be reached').waitFor()
      await screen.filter('Available')
      await page.locator('#banner').getByText('The service cannot be reached').waitFor()
      await screen.waitForCards(3)
      expect(await page.getByRole('radio', { name: 'All' }).isChecked()).toBe(true)
      await screen.expectAccessible()
      await screen.click('Try again')
      await screen.untilTrue("pets.ariaBusy === 'false' && !banner.hidden")
      await page.context().setOffline(false)
      await screen.click('Try again')
      await screen.waitForCards(2)
      expect(await page.locator('#banner').isVisible()).toBe(false)
      expect(await screen.focused()).toBe('heading')
      await screen.click('Add to the catalogue')
      await screen.says('Added Ada as No. 4.')
      expect(await screen.cards.first().textContent()).toContain('Ada')
    }))

  test('says that a key may only read, and forgets everything with the key', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 1)
      await screen.click('Change key')
      await page.getByLabel('Remember on this device').check()
      await screen.typeKey(await service.newKey({ permission: 'read-only' }))
      await screen.waitForCards(1)
      // A proxy refuses the animal, not the key.
      await page.route('**/v1/pets', route => route.fulfill({ status: 403, body: 'Blocked' }), { times: 1 })
      await screen.addAnimal('Rex', '7')
      await screen.says('Unexpected response (status 403)')
      await screen.click('Add to the catalogue')
      await screen.says('This key may only read. To add animals, change the key.')
      expect([await page.locator('#new-pet').isVisible(), await screen.focused()]).toEqual([false, 'read-only'])
      await screen.expectAccessible()
      await screen.filter('Sold')
      await screen.says('No animal is sold')
      await screen.click('Change key')
      await screen.typeKey(service.key)
      await screen.waitForCards(1)
      expect(new URL(page.url()).search).toBe('')
      expect(await page.locator('#name').inputValue()).toBe('')
      // The way back leads to no page of the other person, not even if the browser has kept one.
      await page.goBack()
      await screen.untilTrue("location.search === ''")
      await screen.waitForCards(1)
      await page.evaluate(
        "sessionStorage.clear(); dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))",
      )
      await page.getByLabel('API key').waitFor()
    }))

  test('loads the list again if an animal was changed by another, or may have been changed', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 6)
      const statusNow = () => screen.statusOf('Rex').inputValue()
      await service.stores.pets.update(1n, { status: 'pending' })
      await screen.statusOf('Rex').focus()
      await screen.statusOf('Rex').selectOption('sold')
      await screen.says('Rex has another status now, so it was not changed.')
      expect([await statusNow(), await screen.focused()]).toEqual(['pending', 'pet-1'])
      // The animal is changed, but the response is lost on its way.
      await page.route(/pets.1/, async route => {
        await route.fetch()
        await route.fulfill({ status: 503, body: 'Bad' })
      })
      await screen.statusOf('Rex').selectOption('')
      await screen.says('Rex may have been changed: look at its status.')
      expect(await statusNow()).toBe('')
      await screen.choose('Remove', 'Rex')
      await page.locator('.danger').click()
      await page.locator('dialog').getByText('Unexpected response').waitFor()
      await page.unroute(/pets.1/)
      await page.locator('.danger').click()
      await screen.says('Rex was removed meanwhile.')
      await screen.waitForCards(5)
      await screen.choose('Edit', 'Misty')
      await service.stores.pets.remove(2n)
      await screen.click('Save')
      await screen.says('Misty was removed meanwhile.')
      await screen.waitForCards(4)
      expect(await screen.focused()).toBe('heading')
    }))

  test('puts the old status back and keeps what was typed after another failure, and sends each change once', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 2)
      const { promise: held, resolve: release } = Promise.withResolvers<void>()
      let requests = 0
      await page.route('**/v1/pets/*', async route => {
        requests++
        await held
        await route.fulfill({ status: 429, body: 'Slow down' })
      })
      await screen.statusOf('Rex').selectOption('sold')
      expect(await page.locator('#pet-1[inert]').count()).toBe(1)
      release()
      await screen.says('Too many requests. Wait a moment, then try again.')
      expect(await screen.statusOf('Rex').inputValue()).toBe('available')
      await screen.choose('Edit', 'Rex')
      await page.locator('#edit-name').fill('Max')
      // As Enter does, twice.
      await page
        .locator('dialog form')
        .first()
        .evaluate(form => {
          for (let enters = 0; enters < 2; enters++) Object(form).requestSubmit()
        })
      await page.locator('dialog').getByText('Too many requests').waitFor()
      await screen.expectAccessible()
      expect(requests).toBe(2)
      await page.unroute('**/v1/pets/*')
      await screen.click('Save')
      await screen.says('Changed Max.')
    }))

  test('has no controls with a key that may not change animals, once it knows', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 2)
      await screen.click('Change key')
      await screen.typeKey(await service.newKey())
      await screen.waitForCards(2)
      await screen.choose('Remove', 'Rex')
      await page.locator('.danger').click()
      await screen.says('This key may not change animals.')
      const visible = async () => [
        await page.locator('#pets :is(select, button):visible').count(),
        await page.locator('.plain:visible').count(),
      ]
      expect([await visible(), await screen.focused()]).toEqual([[0, 2], 'view-only'])
      await screen.expectAccessible()
      await page.route('**/v1/pets', route => route.fulfill({ status: 401, body: 'Over' }), { times: 1 })
      await screen.click('Refresh')
      await screen.typeKey(service.key)
      await screen.statusOf('Rex').selectOption('sold')
      await screen.says('Rex is sold.')
      expect(await page.locator('#view-only').isVisible()).toBe(false)
    }))

  test('keeps the key for the tab only, and asks for another when it has expired', () =>
    visit(desktop, async (page, service, screen) => {
      const expiresAt = new Date(Date.now() + 3_600_000)
      await screen.enter(await service.newKey({ expiresAt }))
      await screen.says('No animals yet')
      await page.reload()
      await screen.says('No animals yet')
      const other = await page.context().newPage()
      await other.goto(service.origin)
      await other.getByLabel('API key').waitFor()
      expect(await page.evaluate('localStorage.length + document.cookie.length')).toBe(0)
      setSystemTime(expiresAt)
      try {
        await screen.click('Refresh')
        await screen.says('The API key is expired: use another one')
      } finally {
        setSystemTime()
      }
      expect(await page.evaluate('sessionStorage.length')).toBe(0)
      await screen.typeKey('schlüssel')
      expect(await page.locator('#key:user-invalid').getAttribute('title')).toContain('no accents')
    }))

  test('shows what failed in the middle of the list, and goes on from there, also if the server has another address', () =>
    visit({ ...phone, settings: { publicUrl: 'https://pets.example/shop/v1' } }, async (page, service, screen) => {
      const json = { code: 'store_unavailable', message: 'The store does not answer now', status: 503 }
      await page.route('**/v1/pets?*cursor=*', route => route.fulfill({ status: 503, json }), { times: 1 })
      await screen.enterStocked(service, 45)
      await screen.scrollDown()
      await screen.says('The store does not answer now')
      expect(await screen.cards.count()).toBe(20)
      await screen.click('Try again')
      await screen.waitForCards(45)
    }))

  test('understands addresses and responses that are not its own', () =>
    visit(desktop, async (page, service, screen) => {
      await screen.enterStocked(service, 1)
      await screen.goTo('/docs')
      await screen.goTo('/?status=bogus&at=xyz&ref=mail')
      await screen.waitForCards(1)
      expect(new URL(page.url()).search).toBe('')
      const page401 = { status: 401, contentType: 'text/html', body: '<p>Over' }
      await page.route('**/v1/pets', route => route.fulfill(page401), { times: 1 })
      await screen.click('Refresh')
      await screen.says('This key is not accepted')
      // A mistyped key does not remove the key that another tab remembers.
      await page.evaluate(`localStorage.setItem('petstore-key', '${service.key}')`)
      await screen.typeKey('pets_mistyped')
      await screen.says('Unknown API key')
      expect(await page.evaluate('localStorage.length')).toBe(1)
      await page.goBack()
      expect(page.url()).toEndWith('/docs')
      await screen.goTo('/')
      await screen.waitForCards(1)
      const elsewhere = { status: 302, headers: { location: '/login' } }
      await page.route('**/v1/pets', route => route.fulfill(elsewhere), { times: 1 })
      await screen.click('Refresh')
      await screen.says('Reload this page: you may have to log in again.')
    }))

  test('says that it waits for its first list, and shows only the list that was asked for last', () =>
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
        '\u202eright to left שלום',
        '{"id":9007199254740993} \\" 12345678901234567890',
        'א'.repeat(1_000),
        `e${'\u0301'.repeat(999)}`,
        'W'.repeat(40),
      ]
      const ids = hostile.map((_, index) => 9007199254740993n + BigInt(index))
      const pets = ids.map((id, index) => ({ id, name: hostile[index] ?? '', categoryId: 2n ** 63n - 1n }))
      await keepAnimals(service, pets)
      await screen.enter(service.key)
      await screen.waitForCards(hostile.length)
      expect(await page.locator('.name').allTextContents()).toEqual(hostile)
      const facts = ids.map(id => `No. ${id} · Category 9223372036854775807`)
      expect(await page.locator('.facts').allTextContents()).toEqual(facts)
      expect(await page.title()).toBe('Catalogue · Pet store')
      expect(await page.locator('#pets img, #pets script').count()).toBe(0)
      for (const { viewport } of [desktop, phone]) {
        await page.setViewportSize(viewport)
        expect(await screen.overflowPx()).toBe(0)
        await screen.expectAccessible()
      }
    }))

  test('uses the Idempotency-Key again for the same animal after a failure, and another for another', () =>
    visit(desktop, async (page, service, screen) => {
      const sent: string[] = []
      await page.route('**/v1/pets', async route => {
        const request = route.request()
        if (request.method() === 'GET') return route.continue()
        sent.push(request.headers()['idempotency-key'] ?? '')
        // The animal is added, but the first two responses are lost on their way.
        const response = await route.fetch()
        const lost = { status: 503, contentType: 'text/html', body: '<p>Bad' }
        return route.fulfill(sent.length <= 2 ? lost : { response })
      })
      await screen.enter(service.key)
      await screen.addAnimal('Rex', '7')
      await screen.says('Unexpected response (status 503)')
      await screen.addAnimal('Rex', '8')
      const problem = page.locator('#form-problem')
      await until('the second failure', async () => (sent.length === 2 && (await problem.textContent())) || undefined)
      await screen.addAnimal('Rex', '8')
      await screen.says('Added Rex as No. 2.')
      expect(await page.locator('#form-problem').textContent()).toBe('')
      const [first = '', second] = sent
      expect(first).toMatch(/^[0-9a-f]{32}$/)
      expect(second).not.toBe(first)
      expect(sent).toEqual([first, second ?? '', second ?? ''])
      expect((await service.call('/v1/pets')).json).toHaveLength(2)
    }))
})
