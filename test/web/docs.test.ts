import { expect, test } from 'bun:test'
import { createPages } from '../../src/web/pages.ts'
import { describeInBrowser, desktop, looks, visit } from '../support/browser.ts'
import { startService } from '../support/service.ts'

const struckThrough =
  "getComputedStyle(document.querySelector('.opblock-deprecated .opblock-summary-path__deprecated')).textDecorationLine"

describeInBrowser('the reference page', () => {
  test.each(looks)('shows all operations, and opens the one that the address names (%s)', (look, options) =>
    visit(options, async (page, _service, screen) => {
      await page.goto('/docs')
      await page.locator('.opblock').nth(2).waitFor()
      const operations = await page.locator('.opblock-summary-description').allTextContents()
      expect(operations).toEqual(['List animals', 'Add an animal', 'Fetch an animal'])
      const deprecated = page.locator('.opblock-deprecated .opblock-summary-path__deprecated')
      expect(await deprecated.getAttribute('data-path')).toBe('/pets/{petId}')
      expect(await page.evaluate(struckThrough)).toBe('line-through')
      const isDark = await page.evaluate("document.documentElement.classList.contains('dark-mode')")
      expect(isDark).toBe(look.startsWith('dark'))
      expect(await screen.overflowPx()).toBe(0)
      if (look === 'light, desktop') await screen.picture('docs')
      await page.goto('/docs#/pets/getPet')
      await page.reload()
      await page.getByText('Warning: Deprecated').waitFor()
      expect(await page.locator('.opblock-body').count()).toBe(1)
      expect(await screen.overflowPx()).toBe(0)
    }),
  )

  test('calls the server that it came from, whatever the public address is', () =>
    visit(
      desktop,
      async page => {
        await page.goto('/docs')
        const servers = page.locator('.servers select option')
        await servers.first().waitFor({ state: 'attached' })
        expect(await servers.allTextContents()).toEqual(['/v1 - This instance'])
      },
      { publicUrl: 'https://pets.example.com/v1', stagingUrl: 'https://staging.example.com/v1' },
    ))

  test('tries operations with a key, sends no examples, and shows integers digit for digit', () =>
    visit(desktop, async (page, service) => {
      await page.goto('/docs#/pets/createPet')
      await page.getByRole('button', { name: 'Authorize' }).click()
      await page.locator('.auth-container input').fill(service.key)
      await page.locator('.auth-btn-wrapper').getByRole('button', { name: 'Apply credentials' }).click()
      await page.locator('.auth-btn-wrapper').getByRole('button', { name: 'Close' }).click()
      const answer = page.locator('.live-responses-table .response')
      const execute = async () => {
        await page.getByRole('button', { name: 'Try it out' }).click()
        const body = page.locator('.body-param__text')
        if (await body.isVisible()) await body.fill('{"name":"Rex","categoryId":9223372036854775807}')
        await page.getByRole('button', { name: 'Execute' }).click()
        await answer.waitFor()
      }

      await execute()
      expect(await answer.locator('.response-col_status').textContent()).toContain('201')
      expect(await answer.textContent()).toContain('"categoryId": 9223372036854775807')
      // Sending an example as the key would make every later creation a repetition of this one.
      expect(await page.locator('.curl-command').textContent()).not.toContain('Idempotency-Key')
      await page.locator('#operations-pets-createPet .opblock-summary-control').click()
      await page.locator('#operations-pets-listPets .opblock-summary-control').click()
      await answer.waitFor({ state: 'detached' })
      await execute()
      expect(await answer.locator('.response-col_status').textContent()).toContain('200')
      expect(await answer.textContent()).toContain('"categoryId": 9223372036854775807')
      const sent = await page.locator('.responses-inner .request-url').textContent()
      expect(sent?.trim()).toEndWith(`${service.origin}/v1/pets?limit=20`)
    }))
})

const pages = createPages()

test('the whole catalogue is under 30 KB, uncompressed', async () => {
  const files = [...pages].filter(([path]) => !path.startsWith('/docs'))
  expect(files.map(([path]) => path)).toContain('/')
  const sizes = await Promise.all(files.map(async ([, page]) => (await page.read()).length))
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(30_000)
})

test('every page has a policy that allows nothing from elsewhere and no inline script', async () => {
  await using service = await startService({ pages })
  for (const path of pages.keys()) {
    const { status, headers } = await fetch(service.origin + path, { method: 'HEAD' })
    expect([path, status, headers.get('referrer-policy')]).toEqual([path, 200, 'no-referrer'])
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'")
    expect(policy).toContain("; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
  }
})
