import { expect, test } from 'bun:test'
import { startService } from '../support/service.ts'

test('an animal goes to the disk and back', async () => {
  await using service = await startService()
  const created = await service.call('/v1/pets', { method: 'POST', body: '{"name":"Rex","categoryId":7}' })
  expect(created.text).toBe('{"id":1,"name":"Rex","categoryId":7}')
  expect((await service.call('/v1/pets')).text).toBe('[{"id":1,"name":"Rex","categoryId":7}]')
})
