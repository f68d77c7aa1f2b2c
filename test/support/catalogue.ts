import { expect } from 'bun:test'
import type { Page } from 'playwright-core'
import type { Service } from './service.ts'
import { until } from './visit.ts'

/** Opens the catalogue and enters a key. */
export async function enter(page: Page, key: string): Promise<void> {
  await page.goto('/')
  await page.getByLabel('API key').fill(key)
  await page.getByRole('button', { name: 'Show the animals' }).click()
}

export async function addAnimal(
  page: Page,
  name: string,
  categoryId: string,
  status?: string,
): Promise<void> {
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Category number').fill(categoryId)
  if (status !== undefined) await page.locator('#status').selectOption(status)
  await page.getByRole('button', { name: 'Add to the catalogue' }).click()
}

export const filter = (page: Page, name: string) =>
  page.locator('#filter').getByText(name, { exact: true }).click()
export const cards = (page: Page) => page.locator('#pets > li')
export const curlLines = (page: Page) => page.locator('#log code').allTextContents()

export async function waitForCards(page: Page, count: number): Promise<void> {
  await until(
    page,
    `document.querySelectorAll('#pets > li:not(.skeleton)').length === ${count} && document.querySelectorAll('.skeleton').length === 0`,
  )
}

const names = [
  'Rex',
  'Misty',
  'Bruno',
  'Kiwi',
  'Shadow',
  'Luna',
  'Pepper',
  'Oscar',
  'Nala',
  'Biscuit',
  'Coco',
]
const statuses = ['available', 'available', 'pending', 'sold', undefined]

/** Animals of every status: of 5, 2 are available, 1 pending, 1 sold, and 1 is without. */
export async function stock(service: Service, count: number): Promise<void> {
  for (let number = 0; number < count; number++) {
    const animal = { name: names[number % 11], categoryId: 3 + (number % 4), status: statuses[number % 5] }
    const { status } = await service.call('/v1/pets', { method: 'POST', body: JSON.stringify(animal) })
    expect(status).toBe(201)
  }
}
