import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createPages } from '../../src/web/pages.ts'
import {
  addAnimal,
  cards,
  chromiumPath,
  curlLines,
  desktop,
  enter,
  filter,
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
import { keepAnimals, startService } from '../support/service.ts'

setDefaultTimeout(testMsMax)

const shop = openShop()

describe.skipIf(chromiumPath === undefined)('the states of the catalogue page', () => {
  test('says what to do offline, keeps what was entered, and goes on when the network is back', () =>
    visit(shop, desktop, async (page, service) => {
      await stock(service, 3)
      await enter(page, service.key)
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
    visit(shop, desktop, async (page, service) => {
      await enter(page, await service.newKey({ permission: 'read-only' }))
      await addAnimal(page, 'Rex', '7')
      await page.getByText('This key may only read').waitFor()
      await page.getByRole('button', { name: 'Change key' }).click()
      await page.getByLabel('API key').fill(service.key)
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Add to the catalogue' }).click()
      await page.getByText('Added as No. 1').waitFor()
    }))

  test('keeps the key for the tab only, and asks for another when it has expired', () =>
    visit(shop, desktop, async (page, service) => {
      const expiresAt = new Date(Date.now() + 3_000)
      await enter(page, await service.newKey({ expiresAt }))
      await page.getByText('No animals yet').waitFor()
      await page.reload()
      await page.getByText('No animals yet').waitFor()
      const other = await page.context().newPage()
      await other.goto('/')
      await other.getByLabel('API key').waitFor()
      expect(await page.evaluate('localStorage.length + document.cookie.length')).toBe(0)
      await Bun.sleep(Math.max(0, expiresAt.getTime() - Date.now()))
      await page.getByRole('button', { name: 'Refresh' }).click()
      await page.getByText('This key is not accepted').waitFor()
      expect(await page.evaluate('sessionStorage.length')).toBe(0)
      await page.getByLabel('API key').fill('schlüssel')
      await page.keyboard.press('Enter')
      await page.getByText('A key has no spaces and no accents').waitFor()
    }))

  test('shows what failed in the middle of the list, and goes on from there', () =>
    visit(shop, phone, async (page, service) => {
      await stock(service, 45)
      let failures = 1
      await page.route('**/v1/pets?*cursor=*', async route => {
        const body = '{"code":"store_unavailable","message":"The store does not answer now","status":503}'
        if (failures-- > 0) return route.fulfill({ status: 503, contentType: 'application/json', body })
        return route.continue()
      })
      await enter(page, service.key)
      await waitForCards(page, 20)
      await page.evaluate('scrollTo(0, document.body.scrollHeight)')
      await page.getByText('The store does not answer now').waitFor()
      expect(await cards(page).count()).toBe(20)
      await page.getByRole('button', { name: 'Try again' }).click()
      await waitForCards(page, 40)
    }))

  test('shows placeholders while it waits, and only the list that was asked for last', () =>
    visit(shop, desktop, async (page, service) => {
      await stock(service, 5)
      await enter(page, service.key)
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
      await untilTrue(page, "document.querySelectorAll('#log > li').length === 3")
      expect(await page.locator('.status').allTextContents()).toEqual(['Pending'])
    }))
})

describe.skipIf(chromiumPath === undefined)('what the catalogue page sends and shows', () => {
  test('shows names as text whatever they contain, and ids beyond 2^53 digit for digit', () =>
    visit(shop, phone, async (page, service) => {
      const hostile = [
        '<img src=x onerror="document.title=1"><script>document.title=1</script>',
        '\u202eright to left שלום',
        'W'.repeat(1_000),
        '{"id":9007199254740993} \\" 12345678901234567890',
      ]
      const animals = hostile.map((name, index) => {
        const id = 9007199254740993n + BigInt(index) * 2n
        return { id, name, categoryId: 2n ** 63n - 1n, status: 'pending' as const }
      })
      await keepAnimals(service, animals)
      await enter(page, service.key)
      await waitForCards(page, hostile.length)
      expect(await page.locator('.name').allTextContents()).toEqual(hostile)
      expect(await page.locator('.facts').allTextContents()).toEqual(
        [3, 5, 7, 9].map(end => `No. 900719925474099${end} · Category 9223372036854775807`.replace('9909', '9999')),
      )
      expect(await page.title()).toBe('Catalogue · Pet store')
      expect(await page.locator('#pets img, #pets script').count()).toBe(0)
      const whole = page.getByRole('button', { name: 'Show the whole name' })
      const cutPx = (await cards(page).nth(2).boundingBox())?.height ?? 0
      expect(cutPx).toBeLessThan(250)
      await whole.click()
      expect((await cards(page).nth(2).boundingBox())?.height).toBeGreaterThan(cutPx)
      expect(await overflowPx(page)).toBe(0)

      await page.getByText('Add an animal').click()
      await addAnimal(page, hostile[0] ?? '', '9007199254740993')
      await page.getByText('Added as No. 9007199254741000').waitFor()
      expect(await page.locator('.name').allTextContents()).toEqual([...hostile, hostile[0] ?? ''])
      expect(await overflowPx(page)).toBe(0)
    }))

  test('gives each request as a curl line that does the same and does not show the key', () =>
    visit(shop, { ...desktop, permissions: ['clipboard-read', 'clipboard-write'] }, async (page, service) => {
      await enter(page, service.key)
      const name = `Kim's "\u202e\u200d" ${'`id` $HOME \\ !'} 🐕‍🦺`
      await addAnimal(page, name, '7', 'sold')
      await page.getByText('Added as No. 1').waitFor()
      await filter(page, 'Sold')
      await waitForCards(page, 1)
      const lines = await curlLines(page)
      expect(lines).toHaveLength(3)
      expect(await page.content()).not.toContain(service.key)
      expect(lines.join('\n')).not.toContain('\u202e')

      await page.getByRole('button', { name: 'Copy POST as curl' }).click()
      const copied = String(await page.evaluate('navigator.clipboard.readText()'))
      expect(copied).toBe(lines[1] ?? '')
      const env = { ...process.env, PETSTORE_API_KEY: service.key }
      const curl = (line: string) => Bun.$`sh -c ${line.replace('curl', 'curl -sS')}`.env(env).json()
      // The same Idempotency-Key: the first answer again.
      expect(await curl(copied)).toEqual({ id: 1, name, categoryId: 7, status: 'sold' })
      expect(await curl(lines[0] ?? '')).toEqual([{ id: 1, name, categoryId: 7, status: 'sold' }])
    }))

  test('uses the Idempotency-Key again for the same animal after a failure, and another for another', () =>
    visit(shop, desktop, async (page, service) => {
      const sent: string[] = []
      let failures = 2
      await page.route('**/v1/pets', async route => {
        const request = route.request()
        if (request.method() === 'GET') return route.continue()
        sent.push(request.headers()['idempotency-key'] ?? '')
        // The animal is added, but the answer is lost on its way.
        const response = await route.fetch()
        if (failures-- > 0) return route.fulfill({ status: 503, contentType: 'text/html', body: '<p>Bad' })
        return route.fulfill({ response })
      })
      await enter(page, service.key)
      await addAnimal(page, 'Rex', '7')
      await page.getByText('Unexpected response (status 503)').waitFor()
      await addAnimal(page, 'Rex', '8')
      await untilTrue(page, "document.querySelectorAll('#log > li').length === 3")
      await addAnimal(page, 'Rex', '8')
      await page.getByText('Added as No. 2').waitFor()
      expect(await page.locator('#form-problem').textContent()).toBe('')
      expect(sent).toHaveLength(3)
      expect(sent[0]).toMatch(/^[0-9a-f]{32}$/)
      expect(sent[1]).not.toBe(sent[0] ?? '')
      expect(sent[2]).toBe(sent[1] ?? '')
      expect((await service.call('/v1/pets')).json).toHaveLength(2)
    }))

  test('follows the links of a server that has another public address', async () => {
    const publicUrl = 'https://pets.example/shop/v1'
    await using elsewhere = await startService({ pages: createPages(), publicUrl })
    await stock(elsewhere, 25)
    await visit({ browser: shop.browser, service: elsewhere }, phone, async page => {
      await enter(page, elsewhere.key)
      await waitForCards(page, 20)
      await page.evaluate('scrollTo(0, document.body.scrollHeight)')
      await waitForCards(page, 25)
    })
  })
})
