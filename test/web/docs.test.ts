import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { errorCodes, type OperationId, type OperationRow, operations } from '../../src/http/operations.ts'
import { createPages } from '../../src/web/pages.ts'
import { projectFolder, run, until } from '../support/process.ts'
import { type Service, startService } from '../support/service.ts'
import { describeInBrowser, desktop, looks, phone, stock, visit } from './browser.ts'

const operationIds: readonly OperationId[] = ['createPet', 'listPets', 'getPet', 'updatePet', 'deletePet']
const largest = 9223372036854775807n
const newPet = (name: string) => `{"name":${JSON.stringify(name)},"categoryId":${largest},"status":"sold"}`

const findPanel = (page: Page, id: OperationId) => page.locator(`[id="/pets/${id}"]`)
const findField = (page: Page, id: OperationId, name: string) => page.locator(`[id="${id}-${name}"]`)
const findBody = (page: Page, id: OperationId) => findPanel(page, id).locator('textarea')
const readContent = (page: Page, id: OperationId) => findPanel(page, id).locator('.content').textContent()
const readSample = async (page: Page, id: OperationId) =>
  (await findPanel(page, id).locator('.sample code').textContent()) ?? ''
const openIds = (page: Page) => page.locator('.operation[open]').evaluateAll(panels => panels.map(({ id }) => id))
const readAddress = (page: Page) => page.url().slice(new URL(page.url()).origin.length)

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
  return (await findPanel(page, id).locator('.state').textContent()) ?? ''
}

describeInBrowser('the reference page', () => {
  test.each(looks)('shows every operation and error, is accessible and fits, also with responses (%s)', (_, options) =>
    visit(options, async (page, service, screen) => {
      await screen.goTo('/docs')
      await findPanel(page, 'listPets').locator('form').waitFor()
      const titles = Object.values<OperationRow>(operations).map(({ method, summary, path, deprecated, stability }) =>
        [method, summary, path, deprecated ? 'deprecated' : (stability ?? '')].join(' ').trim(),
      )
      const shown = await page.locator('.operation > summary').allTextContents()
      expect(shown.map(title => title.replace(/\s+/g, ' ').trim())).toEqual(titles)
      const responses = (await page.locator('.responses dd').allTextContents()).join('\n')
      for (const [code, { meaning, action }] of Object.entries(errorCodes)) {
        expect(responses).toContain(`${code}: ${meaning} ${action}`)
      }
      const terms = await page.locator('dl > div').allTextContents()
      expect(terms).toContain(
        'categoryId 64-bit integer requiredThe category of the animal. It does not have to exist.',
      )
      expect(terms).toContain('limit query · integer · 1 to 100 · default 20The maximum number of animals to return.')
      await screen.expectAccessible()
      await screen.typeKey(service.key)
      for (const id of operationIds) await goTo(page, id)
      for (const id of operationIds) await send(page, id)
      await findPanel(page, 'getPet').locator('.state').getByText('200').waitFor()
      await screen.expectAccessible()
      for (const width of [320, page.viewportSize()?.width ?? 0]) {
        await page.setViewportSize({ width, height: 800 })
        expect([width, await screen.overflowPx()]).toEqual([width, 0])
      }
    }),
  )

  test('opens the first operation or the one that the address names, and keeps the address up to date', () =>
    visit(desktop, async (page, _service, screen) => {
      for (const path of ['/docs', '/docs#/pets/none', '/docs#/pets/getPet']) {
        await page.goto('about:blank')
        await screen.goTo(path)
        await page.locator('.operation[open] form').waitFor()
        expect(await openIds(page)).toEqual([path.endsWith('getPet') ? '/pets/getPet' : '/pets/listPets'])
      }
      await screen.untilTrue('document.activeElement.parentElement.getBoundingClientRect().top < innerHeight / 2')
      expect(await screen.focused()).toContain('Fetch an animal')
      await goTo(page, 'createPet')
      await findPanel(page, 'listPets').locator('> summary').click()
      await screen.untilTrue("location.hash === '#/pets/listPets'")
      await page.locator('.skip').press('Enter')
      expect(await screen.focused()).toBe('main')
    }))

  test('shows only the start of the key, and keeps forms when it changes, but nothing of the previous person', () =>
    visit(desktop, async (page, service, screen) => {
      await stock(service, 1)
      await screen.goTo('/docs#/pets/listPets')
      await page.getByLabel('Remember on this device').check()
      await screen.typeKey(service.key)
      await screen.says(`Requests from this page use the key ${service.key.slice(0, 9)}…`)
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
      expect(await readContent(page, 'createPet')).toContain('read_only_key')
      expect(await findField(page, 'listPets', 'limit').inputValue()).toBe('2')

      await page.getByRole('link', { name: 'Catalogue' }).click()
      await screen.waitForCards(1)
      await screen.click('Change key')
      await page.getByLabel('API key').waitFor()
      await page.goBack()
      await findPanel(page, 'createPet').locator('form').waitFor()
      expect([readAddress(page), await readAnswers(page)]).toEqual(['/docs#/pets/createPet', []])
    }))

  /** JSON is shown with line breaks and exact numbers, and any other text as it came. */
  const asShown = [
    ['[{"a":1.0e+5,"b":"{\\"c\\":[1,2]}"},[]]', '[\n  {\n    "a": 1.0e+5,\n    "b": "{\\"c\\":[1,2]}"\n  },\n  []\n]'],
    ...['{"a":1', '<p>a, b: [c]', ''].map(text => [text, text]),
  ] as const
  const settings = { publicUrl: 'https://pets.example.com/v1', stagingUrl: 'https://staging.example.com/v1' }
  test('sends only what the person filled in, to its own server, with exact integers', () =>
    visit({ ...desktop, settings }, async (page, service, screen) => {
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
      await page.locator('#servers code').nth(2).waitFor()
      const servers = await page.locator('#servers code').allTextContents()
      expect(servers).toEqual([settings.publicUrl, `${service.origin}/shop/v1`, settings.stagingUrl])

      await findBody(page, 'createPet').fill(newPet('Rex'))
      await findField(page, 'createPet', 'Idempotency-Key').fill('order-1')
      await findField(page, 'createPet', 'Prefer').fill('handling=strict')
      expect(await send(page, 'createPet')).toStartWith('201')
      expect(await readContent(page, 'createPet')).toContain(`"categoryId": ${largest},`)
      expect(service.logged).toContainEqual(
        expect.objectContaining({ requestId: await findPanel(page, 'createPet').locator('.state code').textContent() }),
      )
      await goTo(page, 'listPets')
      await findField(page, 'listPets', 'status').selectOption('sold')
      await findField(page, 'listPets', 'limit').fill(' 2 ')
      expect(await send(page, 'listPets')).toStartWith('200')
      for (const [body, shown] of asShown) {
        await page.route('**/v1/pets?*', route => route.fulfill({ body }), { times: 1 })
        await send(page, 'listPets')
        expect(await readContent(page, 'listPets')).toBe(shown)
      }
      await goTo(page, 'getPet')
      expect(await send(page, 'getPet')).toStartWith('200')
      await goTo(page, 'updatePet')
      expect(await send(page, 'updatePet')).toStartWith('200')
      await goTo(page, 'deletePet')
      await findField(page, 'deletePet', 'status').selectOption('sold')
      expect(await send(page, 'deletePet')).toStartWith('204')
      expect(await readSample(page, 'deletePet')).toEndWith('\\\n  --request DELETE')
      expect(sent).toEqual([
        'POST /shop/v1/pets application/json order-1 handling=strict',
        ...Array(asShown.length + 1).fill('GET /shop/v1/pets?limit=2&status=sold'),
        'GET /shop/v1/pets/1',
        'PATCH /shop/v1/pets/1 application/json',
        'DELETE /shop/v1/pets/1?status=sold',
      ])
    }))

  test('leads from page to page of a list', () =>
    visit(desktop, async (page, service, screen) => {
      await stock(service, 5)
      await screen.goTo('/docs#/pets/listPets')
      await screen.typeKey(service.key)
      await findField(page, 'listPets', 'limit').fill('2')
      await send(page, 'listPets')
      await page.evaluate("document.querySelector('.operation').scrollIntoView()")
      await screen.picture('reference')
      const readIds = async () =>
        [...((await readContent(page, 'listPets')) ?? '').matchAll(/"id": (\d)/g)].map(([, id]) => id)
      const next = findPanel(page, 'listPets').getByRole('button', { name: 'Next page' })
      for (const ids of [['1', '2'], ['3', '4'], ['5']]) {
        await until(`the animals ${ids}`, async () => Bun.deepEquals(await readIds(), ids) || undefined)
        expect(await next.count()).toBe(ids.length - 1)
        if (ids.length === 2) await next.press('Enter')
      }
      expect(await screen.focused()).toBe('Send')
    }))

  test('says in plain words what is wrong', () =>
    visit(phone, async (page, service, screen) => {
      await screen.goTo('/docs#/pets/getPet')
      const button = findPanel(page, 'getPet').getByRole('button', { name: 'Send' })
      await button.click()
      await screen.says('Enter a key to send requests')
      expect(await screen.focused()).toBe('key')
      await screen.typeKey(`${service.key}x`)
      // Back to the form that asked for the key.
      expect(await screen.focused()).toBe('Send')
      expect(await send(page, 'getPet')).toStartWith('401')
      expect(await readContent(page, 'getPet')).toContain('"code": "invalid_api_key"')
      await screen.click('Change key')
      await screen.typeKey(service.key)
      await findField(page, 'getPet', 'Prefer').fill('日本')
      expect(await send(page, 'getPet')).toContain('expected a string of visible ASCII characters')
      await findField(page, 'getPet', 'Prefer').fill('')
      await page.context().setOffline(true)
      expect(await send(page, 'getPet')).toBe('The service cannot be reached. Check your connection.')
      await goTo(page, 'createPet')
      expect(await send(page, 'createPet')).toContain('The change may be stored')
      await page.context().setOffline(false)
      await page.route('**/openapi.json', route => route.fulfill({ status: 503, json: {} }))
      await page.reload()
      await screen.says('The reference cannot be loaded. Reload this page.')
    }))

  const hostile = `O'Rex "$(exit 9)" \`exit 9\` \\ \${1} </script> \u2028 🐶`

  test('has curl samples that follow the form, give its results and execute no value', () =>
    visit(desktop, async (page, service, screen) => {
      await stock(service, 3)
      await screen.goTo('/docs#/pets/listPets')
      await screen.typeKey(service.key)
      await screen.says('Requests from this page use')
      const samples = [await readSample(page, 'listPets')]
      await findField(page, 'listPets', 'status').selectOption('pending')
      await findField(page, 'listPets', 'limit').fill('2')
      samples.push(await readSample(page, 'listPets'), await readSample(page, 'getPet'))
      await goTo(page, 'createPet')
      await findField(page, 'createPet', 'Idempotency-Key').fill(`a'b"c$(exit)\\`)
      await findBody(page, 'createPet').fill(newPet(hostile))
      samples.push(await readSample(page, 'createPet'))
      const results: string[] = []
      for (const sample of samples) results.push((await paste(sample, service)).stdout)
      expect(results.map(text => [JSON.parse(text)].flat().map(({ id }) => id))).toEqual([[1, 2, 3], [3], [1], [4]])
      expect(JSON.parse(results[3] ?? '')).toMatchObject({ name: hostile })

      const copy = findPanel(page, 'createPet').locator('.sample button')
      await copy.click()
      await screen.says('Copied')
      expect(String(await page.evaluate('navigator.clipboard.readText()'))).toBe(samples[3] ?? '')
      await findBody(page, 'createPet').fill('@package.json')
      await findField(page, 'createPet', 'Prefer').fill("'; exit 9; '")
      const create = await readSample(page, 'createPet')
      expect(JSON.parse((await paste(create, service)).stdout)).toMatchObject({ code: 'invalid_json' })
      await page.evaluate('delete Navigator.prototype.clipboard')
      await copy.click()
      await screen.says('Selected')
      expect(String(await page.evaluate('String(getSelection())'))).toBe(create)
      await goTo(page, 'getPet')
      await findField(page, 'getPet', 'petId').fill('../livez')
      expect(await readSample(page, 'getPet')).toStartWith(`curl '${service.origin}/v1/pets/..%2Flivez'`)
    }))
})

/** Runs a curl sample in sh. */
const paste = (curl: string, { key }: Service) =>
  run(['sh', '-c', curl.replace('curl', 'curl --silent --show-error')], {
    cwd: projectFolder,
    env: { PETSTORE_API_KEY: key },
  })

const pages = createPages()

test('both pages load at most 28 KB, compressed', async () => {
  const files = await Promise.all([...pages.values()].map(page => page.read()))
  expect(files.reduce((bytes, file) => bytes + Bun.gzipSync(file as Uint8Array<ArrayBuffer>).length, 0)).toBeLessThan(
    28_000,
  )
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
    expect(policy).toContain("; require-trusted-types-for 'script'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
  }
})
