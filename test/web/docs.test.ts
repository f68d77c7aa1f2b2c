import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { errorCodes, type OperationId, type OperationRow, operations } from '../../src/http/operations.ts'
import { createPages } from '../../src/web/pages.ts'
import { programFolder } from '../client/program-folder.ts'
import { projectFolder, run, until } from '../support/process.ts'
import { type Service, startService } from '../support/service.ts'
import { describeInBrowser, desktop, looks, phone, stock, visit } from './browser.ts'

const operationIds: readonly OperationId[] = ['createPet', 'listPets', 'getPet', 'updatePet', 'deletePet']
const noAnswers = Object.keys(operations).map(() => '')
const largest = 9223372036854775807n
const newPet = (name: string) => `{"name":${JSON.stringify(name)},"categoryId":${largest},"status":"sold"}`

const heightMax = 2_200

const findPanel = (page: Page, id: OperationId) => page.locator(`[id="/pets/${id}"]`)
const findField = (page: Page, id: OperationId, name: string) => page.locator(`[id="${id}-${name}"]`)
const findAnswer = (page: Page, id: OperationId) => findPanel(page, id).locator('.answer')
const openIds = (page: Page) => page.locator('.operation[open]').evaluateAll(panels => panels.map(({ id }) => id))
const readAddress = (page: Page) => page.url().slice(new URL(page.url()).origin.length)

const readAnswers = (page: Page) => page.locator('.answer').allTextContents()

/** Changes the address within the page. */
async function goTo(page: Page, id: OperationId): Promise<void> {
  await page.evaluate(`location.hash = '/pets/${id}'`)
  await findPanel(page, id).locator('form').waitFor()
}

/** Sends the form of an operation that is open, and returns the status line of the response. */
async function send(page: Page, id: OperationId): Promise<string> {
  await findPanel(page, id).getByRole('button', { name: 'Send' }).click()
  await findPanel(page, id).locator('form:not([aria-busy="true"])').waitFor()
  return (await findAnswer(page, id).locator('p').first().textContent()) ?? ''
}

const readSample = async (page: Page, id: OperationId) =>
  (await findPanel(page, id).locator('.sample code').textContent()) ?? ''

describeInBrowser('the reference page', () => {
  test.each(looks)('is accessible and fits, closed, and open with responses (%s)', (_look, options) =>
    visit(options, async (page, service, screen) => {
      await screen.goTo('/docs')
      await page
        .locator('.operation')
        .nth(noAnswers.length - 1)
        .waitFor()
      const titles = Object.values<OperationRow>(operations).map(({ method, summary, path, deprecated, stability }) =>
        [method.toLowerCase(), summary, path, deprecated ? 'deprecated' : stability].join(''),
      )
      expect(await page.locator('.operation > summary').allTextContents()).toEqual(titles)
      await screen.expectAccessible()
      await screen.typeKey(service.key)
      for (const id of operationIds) await goTo(page, id)
      for (const more of await page.locator('.more').all()) await more.locator('summary').click()
      for (const id of operationIds) await send(page, id)
      await findAnswer(page, 'getPet').getByText('200 OK').waitFor()
      await screen.expectAccessible()
      for (const width of [320, page.viewportSize()?.width ?? 0]) {
        await page.setViewportSize({ width, height: 800 })
        expect([width, await screen.overflowPx()]).toEqual([width, 0])
      }
    }),
  )

  test('opens the first operation or the one that the address names, stays short, and keeps the address up to date', () =>
    visit(desktop, async (page, _service, screen) => {
      for (const path of ['/docs', '/docs#paging', '/docs#/pets/none']) {
        await page.goto('about:blank')
        await screen.goTo(path)
        await findPanel(page, 'listPets').locator('form').waitFor()
        expect([readAddress(page), await openIds(page)]).toEqual([path, ['/pets/listPets']])
        const isAtGuide = "document.querySelector('#paging').getBoundingClientRect().top < 40"
        await screen.untilTrue(`(${isAtGuide}) === ${path.endsWith('#paging')}`)
      }
      for (const id of operationIds) {
        await page.goto('about:blank')
        await screen.goTo(`/docs#/pets/${id}`)
        await findPanel(page, id).locator('form').waitFor()
        expect(await openIds(page)).toEqual([`/pets/${id}`])
        expect(await page.evaluate("document.querySelector('#operations').offsetHeight")).toBeLessThan(heightMax)
        await screen.untilTrue('document.activeElement.parentElement.getBoundingClientRect().top < innerHeight / 2')
        expect(await screen.focused()).toBe(await findPanel(page, id).locator('> summary').textContent())
      }
      const text = await findPanel(page, 'getPet').locator('.warning').textContent()
      expect(text).toBe('Deprecated, to be removed on 5 December 2030. Use GET /pets with a status filter instead.')
      await goTo(page, 'createPet')
      await findPanel(page, 'listPets').locator('> summary').click()
      await screen.untilTrue("location.hash === '#/pets/listPets'")
      await findPanel(page, 'listPets').locator('> summary').click()
      await screen.untilTrue("location.hash === ''")
      expect(readAddress(page)).toBe('/docs')
      expect(await openIds(page)).toEqual(['/pets/createPet', '/pets/deletePet'])
      await page.keyboard.press('Home')
      await page.locator('.skip').focus()
      await page.keyboard.press('Enter')
      expect(await screen.focused()).toBe('main')
    }))

  test('shows parameters, responses and headers once for each operation', () =>
    visit(desktop, async (page, _service, screen) => {
      await screen.goTo('/docs#/pets/createPet')
      const panel = findPanel(page, 'createPet')
      await panel.locator('form').waitFor()
      const terms = await panel.locator('.terms > div').allTextContents()
      const categoryId = 'categoryId 64-bit integer requiredThe category of the animal. It does not have to exist.'
      expect(terms).toContain(categoryId)
      expect(terms.filter(term => term.startsWith('X-Request-Id'))).toHaveLength(1)
      const statuses = await panel.locator('.responses dt').allTextContents()
      expect(statuses.join(' ')).toBe('201 400 401 403 408 413 415 422 429 500 503 other')
      const codes = await panel.locator('.responses dd').nth(1).locator('code').allTextContents()
      expect(codes).toEqual(['invalid_request', 'invalid_json', 'missing_body'])
      const [limit] = await findPanel(page, 'listPets').locator('.terms > div').allTextContents()
      expect(limit).toBe('limit query · integer · 1 to 100 · default 20The maximum number of animals to return.')
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
      expect(await send(page, 'listPets')).toStartWith('200 OK')
      await goTo(page, 'getPet')
      await page.route('**/v1/pets/1', () => {}, { times: 1 })
      await findPanel(page, 'getPet').getByRole('button', { name: 'Send' }).click()
      await screen.says('Sending…')
      const other = await page.context().newPage()
      await other.goto(`${service.origin}/docs`)
      expect(await send(other, 'listPets')).toStartWith('200 OK')

      await screen.click('Change key')
      expect(await screen.focused()).toBe('key')
      expect(await page.evaluate('sessionStorage.length + localStorage.length')).toBe(0)
      expect(await page.getByLabel('Remember on this device').isChecked()).toBe(false)
      // The other tab used the key of the device.
      await other.getByLabel('API key').waitFor()
      expect(await readAnswers(other)).toEqual(noAnswers)
      await screen.typeKey(await service.newKey({ permission: 'read-only' }))
      expect(await screen.focused()).toBe('Send')
      await goTo(page, 'createPet')
      expect(await send(page, 'createPet')).toStartWith('403 Forbidden')
      expect(await readAnswers(page)).toEqual(noAnswers.with(1, expect.stringContaining('read_only_key')))
      expect(await openIds(page)).toEqual(['listPets', 'createPet', 'getPet'].map(id => `/pets/${id}`))
      expect(await findField(page, 'listPets', 'limit').inputValue()).toBe('2')
      expect(await send(page, 'getPet')).toStartWith('200 OK')

      await page.getByRole('link', { name: 'Catalogue' }).click()
      await screen.waitForCards(1)
      await screen.click('Change key')
      await page.getByLabel('API key').waitFor()
      await page.goBack()
      await findPanel(page, 'createPet').locator('form').waitFor()
      expect([readAddress(page), await readAnswers(page)]).toEqual(['/docs#/pets/createPet', noAnswers])
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

      expect(await send(page, 'createPet')).toStartWith('201 Created in ')
      await findField(page, 'createPet', 'body').fill(newPet('Rex'))
      await findField(page, 'createPet', 'Idempotency-Key').fill('order-1')
      await findField(page, 'createPet', 'Prefer').fill('handling=strict')
      await send(page, 'createPet')
      const created = findAnswer(page, 'createPet').locator('pre')
      await created.getByText(`"categoryId": ${largest},`).waitFor()
      expect(service.logged).toContainEqual(
        expect.objectContaining({ requestId: await findAnswer(page, 'createPet').locator('.hint code').textContent() }),
      )
      await goTo(page, 'listPets')
      expect(await send(page, 'listPets')).toStartWith('200 OK')
      expect(await findAnswer(page, 'listPets').locator('pre').textContent()).toContain(`"categoryId": ${largest},`)
      await findField(page, 'listPets', 'status').selectOption('sold')
      await findField(page, 'listPets', 'limit').fill(' 2 ')
      await send(page, 'listPets')
      await findField(page, 'listPets', 'status').selectOption('')
      for (const [body, shown] of asShown) {
        await page.route('**/v1/pets?limit=2', route => route.fulfill({ body }), { times: 1 })
        await send(page, 'listPets')
        await screen.untilTrue(`document.querySelector('.answer pre').textContent === ${JSON.stringify(shown)}`)
      }
      await goTo(page, 'getPet')
      expect(await send(page, 'getPet')).toStartWith('200 OK')
      expect(await readSample(page, 'getPet')).toStartWith(`curl '${service.origin}/shop/v1/pets/1'`)
      await goTo(page, 'updatePet')
      expect(await send(page, 'updatePet')).toStartWith('200 OK')
      await goTo(page, 'deletePet')
      await findField(page, 'deletePet', 'status').selectOption('sold')
      expect(await send(page, 'deletePet')).toStartWith('204 No Content')
      expect(await readSample(page, 'deletePet')).toEndWith('\\\n  --request DELETE')
      expect(await page.locator('.guide code').allTextContents()).toContainEqual(
        expect.stringContaining(`baseUrl: '${service.origin}/shop/v1'`),
      )
      expect(sent).toEqual([
        'POST /shop/v1/pets application/json',
        'POST /shop/v1/pets application/json order-1 handling=strict',
        'GET /shop/v1/pets',
        'GET /shop/v1/pets?limit=2&status=sold',
        ...asShown.map(() => 'GET /shop/v1/pets?limit=2'),
        'GET /shop/v1/pets/1',
        'PATCH /shop/v1/pets/1 application/json',
        'DELETE /shop/v1/pets/1?status=sold',
      ])
    }))

  test('leads from page to page of a list, and shows all of an error', () =>
    visit(desktop, async (page, service, screen) => {
      await stock(service, 5)
      await screen.goTo('/docs#/pets/listPets')
      await screen.typeKey(service.key)
      await findField(page, 'listPets', 'limit').fill('2')
      await send(page, 'listPets')
      await screen.picture('reference')
      const idsShown = async () =>
        [...((await findAnswer(page, 'listPets').locator('pre').textContent()) ?? '').matchAll(/"id": (\d)/g)].map(
          ([, id]) => id,
        )
      const next = findAnswer(page, 'listPets').getByRole('button', { name: 'Next page' })
      for (const ids of [['1', '2'], ['3', '4'], ['5']]) {
        await until(`the animals ${ids}`, async () => Bun.deepEquals(await idsShown(), ids) || undefined)
        expect(await next.count()).toBe(ids.length - 1)
        if (ids.length === 2) await next.press('Enter')
      }
      expect(await screen.focused()).toBe('Send')
      await findField(page, 'listPets', 'cursor').fill('')
      await send(page, 'listPets')
      await next.click()
      await until('the second page', async () => Bun.deepEquals(await idsShown(), ['3', '4']) || undefined)
      // A cursor belongs to a list with one status.
      await findField(page, 'listPets', 'status').selectOption('sold')
      expect([await findField(page, 'listPets', 'cursor').inputValue(), await next.count()]).toEqual(['', 0])
      expect(await send(page, 'listPets')).toStartWith('200 OK')
      await goTo(page, 'createPet')
      expect(await findField(page, 'createPet', 'body').inputValue()).toContain('"categoryId": 7,')
      await findField(page, 'createPet', 'body').fill('{"name":"","categoryId":"seven","status":"lost"}')
      expect(await send(page, 'createPet')).toStartWith('400 Bad Request')
      const isWhole = '[...document.querySelectorAll(".answer pre")].every(box => box.scrollWidth <= box.clientWidth)'
      expect(await page.evaluate(isWhole)).toBe(true)
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
      await page.keyboard.press('Enter')
      await findAnswer(page, 'getPet').getByText('Change the key at the top of this page').waitFor()
      await findAnswer(page, 'getPet').getByText('"code": "invalid_api_key"').waitFor()
      await screen.click('Change key')
      expect(await page.evaluate('sessionStorage.length')).toBe(0)
      await screen.typeKey(service.key)
      expect(await screen.focused()).toBe('Send')

      const id = findField(page, 'getPet', 'petId')
      await id.fill('../livez')
      expect(await readSample(page, 'getPet')).toStartWith(`curl '${service.origin}/v1/pets/..%2Flivez'`)
      await findField(page, 'getPet', 'Prefer').fill('日本')
      expect(await send(page, 'getPet')).toContain('expected a string of visible ASCII characters')
      await screen.expectAccessible()
      await id.fill('1')
      await findField(page, 'getPet', 'Prefer').fill('')
      await page.context().setOffline(true)
      await button.click()
      await findAnswer(page, 'getPet').getByText('The service cannot be reached').waitFor()
      expect(await findAnswer(page, 'getPet').locator('pre').count()).toBe(0)
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
      const taken = [await readSample(page, 'listPets')]
      await findField(page, 'listPets', 'status').selectOption('pending')
      await findField(page, 'listPets', 'limit').fill('2')
      await findField(page, 'listPets', 'Prefer').fill('handling=strict')
      taken.push(await readSample(page, 'listPets'), await readSample(page, 'getPet'))
      await goTo(page, 'createPet')
      await findField(page, 'createPet', 'Idempotency-Key').fill(`a'b"c$(exit)\\`)
      await findField(page, 'createPet', 'body').fill(newPet(hostile))
      taken.push(await readSample(page, 'createPet'))
      const results: string[] = []
      for (const sample of taken) results.push((await paste(sample, service)).stdout)
      expect(results.map(text => [JSON.parse(text)].flat().map(({ id }) => id))).toEqual([[1, 2, 3], [3], [1], [4]])
      expect(results[3]).toContain(`"categoryId":${largest}`)
      expect(JSON.parse(results[3] ?? '')).toMatchObject({ name: hostile })

      await screen.click('Copy Add an animal as curl')
      await screen.says('Copied')
      expect(String(await page.evaluate('navigator.clipboard.readText()'))).toBe(taken[3] ?? '')

      await findField(page, 'createPet', 'body').fill('@package.json')
      await findField(page, 'createPet', 'Prefer').fill("'; exit 9; '")
      const create = await readSample(page, 'createPet')
      expect(JSON.parse((await paste(create, service)).stdout)).toMatchObject({ code: 'invalid_json' })
      await goTo(page, 'listPets')
      await findField(page, 'listPets', 'cursor').fill("'});$(exit 9)#&limit=1")
      const list = await readSample(page, 'listPets')
      expect(JSON.parse((await paste(list, service)).stdout)).toMatchObject({ code: 'invalid_cursor' })
      await page.evaluate('delete Navigator.prototype.clipboard')
      await screen.click('Copy List animals as curl')
      await screen.says('Selected')
      expect(String(await page.evaluate('String(getSelection())'))).toBe(list)
    }))

  test('has guides with samples that run, and every error code with what to do', () =>
    visit({ ...desktop, settings: { rateLimit: { requests: 100, seconds: 60 } } }, async (page, service, screen) => {
      await stock(service, 2)
      await service.stores.pets.create({ name: 'Kim', categoryId: largest })
      await screen.goTo('/docs')
      await page.locator('#guides .sample').first().waitFor()
      const described = new Set(await page.locator('.responses p').allTextContents())
      for (const [code, { meaning, action }] of Object.entries(errorCodes)) {
        expect(described).toContain(`${code}: ${meaning} ${action}`)
      }

      const [paging = '', retries = '', errors = '', limits = '', integers = '', ...others] = await page
        .locator('.guide .sample code')
        .allTextContents()
      expect(others).toEqual([])
      using folder = programFolder()
      for (const [index, text] of [paging, errors, integers].entries()) folder.write(`${index}.ts`, text)
      await folder.expectTypesToPass()
      const runs = ['0.ts', '1.ts', '2.ts'].map(name => folder.run(name, { PETSTORE_API_KEY: service.key }))
      const outputs = (await Promise.all(runs)).map(({ stdout, stderr }) => stdout + stderr)
      expect(outputs).toEqual([
        '1n Rex\n2n Misty\n3n Kim\n',
        expect.stringMatching(/^invalid_cursor cursor is "mistyped": .* [\w-]{36}\n$/),
        expect.stringContaining(`\n${largest}n {"id":3,"name":"Kim","categoryId":${largest}}\n`),
      ])
      expect((await paste(limits, service)).stdout).toMatch(/^ratelimit: "default";r=\d+;t=\d+\r$/im)
      for (const isReplayed of [false, true]) {
        const { stdout, stderr } = await paste(retries, service)
        expect([stderr, /^idempotency-replayed: true\r$/im.test(stdout)]).toEqual(['', isReplayed])
        expect(stdout).toEndWith('{"id":4,"name":"Rex","categoryId":7}')
      }
      await screen.click('Copy Rate limits as curl')
      expect(String(await page.evaluate('navigator.clipboard.readText()'))).toBe(limits)
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
