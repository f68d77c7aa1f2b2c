import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { errorCodes, type OperationId, type OperationRow, operations } from '../../src/http/operations.ts'
import { createPages } from '../../src/web/pages.ts'
import { startService } from '../http/service.ts'
import { projectFolder, readOutput } from '../support/process.ts'
import { describeInBrowser, desktop, looks, phone, stock, visit } from './browser.ts'

const newPet = (name: string) => `{"name":${JSON.stringify(name)},"categoryId":9223372036854775807,"status":"sold"}`

const findPanel = (page: Page, id: OperationId) => page.locator(`[id="/pets/${id}"]`)
const findField = (page: Page, id: OperationId, name: string) => page.locator(`[id="${id}-${name}"]`)
const findBody = (page: Page, id: OperationId) => findPanel(page, id).locator('textarea')
const readContent = (page: Page, id: OperationId) => findPanel(page, id).locator('.content').innerText()
const readSample = (page: Page, id: OperationId) => findPanel(page, id).locator('.sample code').innerText()

/** What is shown of responses. */
const readAnswers = async (page: Page) =>
  (await page.locator(':is(.state, .content, .headers)').allTextContents()).filter(Boolean)

/** Changes the address within the page. */
async function goTo(page: Page, id: OperationId): Promise<void> {
  await page.evaluate(`location.hash = '/pets/${id}'`)
  await findPanel(page, id).locator('form').waitFor()
}

/** Sends the form of an operation that is open, and returns the first line about the response. */
async function send(page: Page, id: OperationId): Promise<string> {
  await findPanel(page, id).getByRole('button', { name: 'Send' }).click()
  await findPanel(page, id).locator('form:not([aria-busy="true"])').waitFor()
  return findPanel(page, id).locator('.state').innerText()
}

describeInBrowser('the reference page', () => {
  test.each(looks)('shows every operation and error, is accessible and fits, also with responses (%s)', (_, options) =>
    visit(options, async (page, service, screen) => {
      await screen.goTo('/docs')
      await findPanel(page, 'listPets').locator('form').waitFor()
      for (const { method, summary, path, deprecated, stability } of Object.values<OperationRow>(operations)) {
        const label = deprecated ? 'deprecated' : (stability ?? '')
        await screen.shows('.operation > summary', [method, summary, path, label].join(' '))
      }
      const responses = (await page.locator('.responses dd').allTextContents()).join('\n')
      for (const code of Object.keys(errorCodes)) expect(responses).toContain(code)
      await screen.shows('.parameters > div', 'limit query · integer · 1 to 100 · default 20')
      await screen.expectAccessible()
      await screen.typeKey(service.key)
      const ids = Object.keys(operations) as OperationId[]
      for (const id of ids) await goTo(page, id)
      for (const id of ids) await send(page, id)
      await screen.expectAccessible()
      await page.setViewportSize({ width: 320, height: 800 })
      expect(await screen.overflowPx()).toBe(0)
    }),
  )

  test('opens the operation in the address, keeps the address up to date, and leads from page to page of a list', () =>
    visit(desktop, async (page, service, screen) => {
      await stock(service, 3)
      await screen.goTo('/docs#/pets/getPet')
      await page.locator('.operation[open] form').waitFor()
      expect(await page.locator('.operation[open]').count()).toBe(1)
      await screen.untilTrue('document.activeElement.parentElement.getBoundingClientRect().top < innerHeight / 2')
      expect(await screen.focused()).toContain(operations.getPet.summary)
      const panel = findPanel(page, 'listPets')
      await panel.locator('> summary').click()
      await screen.untilTrue("location.hash === '#/pets/listPets'")
      await page.locator('.skip').press('Enter')
      expect(await screen.focused()).toBe('main')
      await screen.typeKey(service.key)
      await findField(page, 'listPets', 'limit').fill('2')
      await send(page, 'listPets')
      const next = panel.getByRole('button', { name: 'Next page' })
      await next.press('Enter')
      await panel.locator('.content').getByText('"id": 3').waitFor()
      expect([await next.count(), await screen.focused()]).toEqual([0, 'Send'])
    }))

  test('shows only the start of the key, and keeps forms when it changes, but nothing of the previous person', () =>
    visit(desktop, async (page, service, screen) => {
      await stock(service, 1)
      await screen.goTo('/docs#/pets/listPets')
      await page.getByLabel('Remember on this device').check()
      await screen.typeKey(service.key)
      await screen.shows('#key-known', service.key.slice(0, 9))
      expect(await page.locator('body').innerHTML()).not.toContain(service.key.slice(0, 10))
      await findField(page, 'listPets', 'limit').fill('2')
      expect(await send(page, 'listPets')).toStartWith('200')
      await goTo(page, 'getPet')
      const release = await screen.hold('**/v1/pets/1')
      await findPanel(page, 'getPet').getByRole('button', { name: 'Send' }).click()
      const other = await page.context().newPage()
      await other.goto(`${service.origin}/docs`)
      expect(await send(other, 'listPets')).toStartWith('200')

      await screen.click('Change key')
      expect(await screen.focused()).toBe('key')
      expect(await page.evaluate('sessionStorage.length + localStorage.length')).toBe(0)
      expect(await page.getByLabel('Remember on this device').isChecked()).toBe(false)
      // The other tab used the key of the device.
      await other.getByLabel('API key').waitFor()
      expect(await readAnswers(other)).toEqual([])
      await screen.typeKey(await service.newKey({ permission: 'read-only' }))
      expect(await screen.focused()).toBe('Send')
      release()
      await findPanel(page, 'getPet').locator('form[aria-busy="false"]').waitFor()
      expect(await readAnswers(page)).toEqual([])
      await goTo(page, 'createPet')
      expect(await send(page, 'createPet')).toStartWith('403')
      expect(await findField(page, 'listPets', 'limit').inputValue()).toBe('2')
    }))

  test('sends only what the person filled in, to its own server, with exact integers', () =>
    visit({ ...desktop, settings: { publicUrl: 'https://pets.example.com/v1' } }, async (page, service, screen) => {
      // As behind a proxy that serves the page under another path.
      await page.route('**/shop/**', route => {
        route.continue({ url: route.request().url().replace('/shop/', '/') })
      })
      const sent: string[] = []
      page.on('request', request => {
        const { authorization, 'content-type': type, 'idempotency-key': key, prefer } = request.headers()
        const path = request.url().slice(service.origin.length)
        if (authorization) sent.push([request.method(), path, type, key, prefer].filter(Boolean).join(' '))
      })
      await screen.goTo('/shop/docs#/pets/createPet')
      await screen.typeKey(service.key)
      await screen.shows('#servers', /pets\.example\.com.*\/shop\/v1/)
      await findBody(page, 'createPet').fill(newPet('Rex'))
      await findField(page, 'createPet', 'Idempotency-Key').fill('order-1')
      await findField(page, 'createPet', 'Prefer').fill('handling=strict')
      expect(await send(page, 'createPet')).toStartWith('201')
      expect(await readContent(page, 'createPet')).toContain('"categoryId": 9223372036854775807,')
      const requestId = await findPanel(page, 'createPet').locator('.state code').textContent()
      expect(service.logged).toContainEqual(expect.objectContaining({ requestId }))
      await goTo(page, 'listPets')
      await findField(page, 'listPets', 'status').selectOption('sold')
      await findField(page, 'listPets', 'limit').fill(' 2 ')
      // JSON is shown with line breaks and exact numbers, and any other text as it came.
      for (const [body, shown] of [
        ['[{"a":1.0e+5,"b":"{}"}]', '[\n  {\n    "a": 1.0e+5,\n    "b": "{}"\n  }\n]'],
        ['<p>a, b: [c]', '<p>a, b: [c]'],
      ] as const) {
        await page.route('**/v1/pets?*', route => route.fulfill({ body }), { times: 1 })
        expect(await send(page, 'listPets')).toStartWith('200')
        expect(await readContent(page, 'listPets')).toBe(shown)
      }
      for (const id of ['getPet', 'updatePet', 'deletePet'] as const) {
        await goTo(page, id)
        if (id === 'deletePet') await findField(page, id, 'status').selectOption('sold')
        expect(await send(page, id)).toStartWith(id === 'deletePet' ? '204' : '200')
      }
      expect(sent).toEqual([
        'POST /shop/v1/pets application/json order-1 handling=strict',
        ...Array(2).fill('GET /shop/v1/pets?limit=2&status=sold'),
        'GET /shop/v1/pets/1',
        'PATCH /shop/v1/pets/1 application/json',
        'DELETE /shop/v1/pets/1?status=sold',
      ])
    }))

  test('says what is wrong, and what to do', () =>
    visit(phone, async (page, service, screen) => {
      await screen.goTo('/docs#/pets/getPet')
      await findPanel(page, 'getPet').getByRole('button', { name: 'Send' }).click()
      await screen.shows('#key-problem', 'Enter a key')
      expect(await screen.focused()).toBe('key')
      await screen.typeKey(`${service.key}x`)
      // Back to the form that asked for the key.
      expect(await screen.focused()).toBe('Send')
      expect(await send(page, 'getPet')).toStartWith('401')
      await findField(page, 'getPet', 'Prefer').fill('日本')
      expect(await send(page, 'getPet')).toContain('Prefer')
      await findField(page, 'getPet', 'Prefer').fill('')
      await page.context().setOffline(true)
      expect(await send(page, 'getPet')).toBe('The service cannot be reached. Check your connection.')
      await goTo(page, 'createPet')
      expect(await send(page, 'createPet')).toContain('The change may be stored')
      await page.context().setOffline(false)
      await page.route('**/openapi.json', route => route.fulfill({ status: 503, json: {} }))
      await page.reload()
      await screen.shows('#problem', 'cannot be loaded')
    }))

  test('has curl samples that follow the form, give its results and execute no value', () =>
    visit(desktop, async (page, service, screen) => {
      await stock(service, 3)
      const paste = async (curl: string) => {
        const command = ['sh', '-c', curl.replace('curl', 'curl --silent --show-error')]
        const env = { PETSTORE_API_KEY: service.key }
        return JSON.parse(await readOutput(command, { cwd: projectFolder, env }))
      }
      await screen.goTo('/docs#/pets/listPets')
      await findField(page, 'listPets', 'status').selectOption('pending')
      await findField(page, 'listPets', 'limit').fill('2')
      expect(await paste(await readSample(page, 'listPets'))).toMatchObject([{ id: 3 }])
      await goTo(page, 'createPet')
      const hostile = `O'Rex "$(exit 9)" \`exit 9\` \\ \${1} </script> \u2028 🐶`
      await findField(page, 'createPet', 'Idempotency-Key').fill(`a'b"c$(exit)\\`)
      await findBody(page, 'createPet').fill(newPet(hostile))
      const copy = findPanel(page, 'createPet').locator('.sample button')
      await copy.click()
      await screen.shows('.operation[open] .sample button', 'Copied')
      const copied = String(await page.evaluate('navigator.clipboard.readText()'))
      expect(await paste(copied)).toMatchObject({ id: 4, name: hostile })
      await findBody(page, 'createPet').fill('@package.json')
      await page.evaluate('delete Navigator.prototype.clipboard')
      await copy.click()
      await screen.shows('.operation[open] .sample button', 'Selected')
      const selected = String(await page.evaluate('String(getSelection())'))
      expect(await paste(selected)).toMatchObject({ code: 'invalid_json' })
      await goTo(page, 'deletePet')
      await findField(page, 'deletePet', 'petId').fill('../livez')
      const removal = await readSample(page, 'deletePet')
      expect(removal).toEndWith('--request DELETE')
      expect(await paste(removal)).toMatchObject({ code: 'pet_not_found' })
    }))
})

test('every page has a policy that allows nothing from elsewhere and no inline script', async () => {
  const pages = createPages()
  await using service = await startService({ pages })
  for (const path of pages.keys()) {
    const { headers } = await fetch(service.origin + path, { method: 'HEAD' })
    expect([path, headers.get('referrer-policy')]).toEqual([path, 'no-referrer'])
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toStartWith("default-src 'none'; script-src 'self'; ")
    expect(policy).toContain("; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for")
    expect(policy).not.toMatch(/unsafe|https?:|data:|\*/)
  }
})
