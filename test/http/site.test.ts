import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service[Symbol.asyncDispose]())

const ask = (headers: Record<string, string>) =>
  fetch(`${service.origin}/openapi.json`, { headers, decompress: false })

describe('/openapi.json', () => {
  test.each(['gzip', 'br, gzip', 'deflate, GZIP;q=0.5', 'gzip;q=1.0, *;q=0'])(
    'is compressed for "%s"',
    async encodings => {
      const response = await ask({ 'accept-encoding': encodings })
      expect(response.headers.get('content-encoding')).toBe('gzip')
      expect(response.headers.get('vary')).toBe('Accept-Encoding')
      const bytes = Bun.gunzipSync(new Uint8Array(await response.arrayBuffer()))
      expect(JSON.parse(new TextDecoder().decode(bytes)).openapi).toBe('3.1.0')
    },
  )

  test.each(['identity', 'br', 'gzip;q=0', 'gzip; q=0.000, br', 'xgzip'])(
    'is plain for "%s"',
    async encodings => {
      const response = await ask({ 'accept-encoding': encodings })
      expect(response.headers.get('content-encoding')).toBeNull()
      expect(JSON.parse(await response.text()).openapi).toBe('3.1.0')
    },
  )

  test('is not sent again to whoever has it', async () => {
    const etag = (await ask({})).headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[\w-]{22}"$/)
    for (const held of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const response = await ask({ 'if-none-match': held })
      expect([response.status, await response.text(), response.headers.get('etag')]).toEqual([304, '', etag])
    }
    expect((await ask({ 'if-none-match': '"other"' })).status).toBe(200)
  })
})
