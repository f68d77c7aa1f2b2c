import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createPages } from '../../src/web/pages.ts'
import { addAnimal, cards, curlLines, enter, filter, stock, waitForCards } from '../support/catalogue.ts'
import { keepAnimals, startService } from '../support/service.ts'
import { chromium, openShop } from '../support/shop.ts'
import { desktop, overflowPx, phone, until, visit } from '../support/visit.ts'

setDefaultTimeout(60_000)

const shop = openShop()

describe.skipIf(chromium === undefined)('what the catalogue page sends and shows', () => {
  test('shows names as text whatever they contain, and ids beyond 2^53 digit for digit', () =>
    visit(shop.browser, shop.service.origin, phone, async page => {
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
      await keepAnimals(shop.service, animals)
      await enter(page, shop.service.key)
      await waitForCards(page, hostile.length)
      expect(await page.locator('.name').allTextContents()).toEqual(hostile)
      expect(await page.locator('.facts').allTextContents()).toEqual(
        [3, 5, 7, 9].map(end =>
          `No. 900719925474099${end} · Category 9223372036854775807`.replace('9909', '9999'),
        ),
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
    visit(
      shop.browser,
      shop.service.origin,
      { ...desktop, permissions: ['clipboard-read', 'clipboard-write'] },
      async page => {
        await enter(page, shop.service.key)
        const name = `Kim's "\u202e\u200d" ${'`id` $HOME \\ !'} 🐕‍🦺`
        await addAnimal(page, name, '7', 'sold')
        await page.getByText('Added as No. 1').waitFor()
        await filter(page, 'Sold')
        await waitForCards(page, 1)
        const lines = await curlLines(page)
        expect(lines).toHaveLength(3)
        expect(await page.content()).not.toContain(shop.service.key)
        expect(lines.join('\n')).not.toContain('\u202e')

        await page.getByRole('button', { name: 'Copy POST as curl' }).click()
        const copied = String(await page.evaluate('navigator.clipboard.readText()'))
        expect(copied).toBe(lines[1] ?? '')
        const env = { ...process.env, PETSTORE_API_KEY: shop.service.key }
        const curl = (line: string) => Bun.$`sh -c ${line.replace('curl', 'curl -sS')}`.env(env).json()
        // The same Idempotency-Key: the first answer again.
        expect(await curl(copied)).toEqual({ id: 1, name, categoryId: 7, status: 'sold' })
        expect(await curl(lines[0] ?? '')).toEqual([{ id: 1, name, categoryId: 7, status: 'sold' }])
      },
    ))

  test('uses the Idempotency-Key again for the same animal after a failure, and another for another', () =>
    visit(shop.browser, shop.service.origin, desktop, async page => {
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
      await enter(page, shop.service.key)
      await addAnimal(page, 'Rex', '7')
      await page.getByText('The answer was not understood (status 503)').waitFor()
      await addAnimal(page, 'Rex', '8')
      await until(page, "document.querySelectorAll('#log > li').length === 3")
      await addAnimal(page, 'Rex', '8')
      await page.getByText('Added as No. 2').waitFor()
      expect(await page.locator('#form-problem').textContent()).toBe('')
      expect(sent).toHaveLength(3)
      expect(sent[0]).toMatch(/^[0-9a-f]{32}$/)
      expect(sent[1]).not.toBe(sent[0] ?? '')
      expect(sent[2]).toBe(sent[1] ?? '')
      expect((await shop.service.call('/v1/pets')).json).toHaveLength(2)
    }))

  test('follows the links of a server that has another public address', async () => {
    const publicUrl = 'https://pets.example/shop/v1'
    await using elsewhere = await startService({ pages: createPages(), publicUrl })
    await stock(elsewhere, 25)
    await visit(shop.browser, elsewhere.origin, phone, async page => {
      await enter(page, elsewhere.key)
      await waitForCards(page, 20)
      await page.evaluate('scrollTo(0, document.body.scrollHeight)')
      await waitForCards(page, 25)
    })
  })
})
