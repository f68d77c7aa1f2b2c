import { afterAll, expect, test } from 'bun:test'
import { listServers } from '../../src/http/openapi.ts'
import { startService } from './service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const ask = (headers: Record<string, string>) => fetch(`${service.origin}/openapi.json`, { headers, decompress: false })

const publicUrl = 'https://pets.example.com/v1'
const stagingUrl = 'https://staging.example.com/v1'
const here = { url: '/v1', description: 'This instance' }
const production = { url: publicUrl, description: 'Production' }
const staging = { url: stagingUrl, description: 'Staging' }

test.each([
  [{}, [here]],
  [{ publicUrl, stagingUrl }, [production, here, staging]],
  [{ publicUrl: stagingUrl, stagingUrl }, [staging, here]],
])('/openapi.json with %j names these servers', (urls, servers) => {
  expect(listServers({ publicUrl: undefined, stagingUrl: undefined, ...urls })).toEqual(servers)
})

test.each([
  ...['gzip', 'deflate, GZIP;q=0.5'].map(accepted => [accepted, 'gzip'] as const),
  ...['identity', 'gzip; q=0.000, br', 'xgzip'].map(accepted => [accepted, null] as const),
])('/openapi.json for "Accept-Encoding: %s" has the encoding %s', async (accepted, encoding) => {
  const response = await ask({ 'accept-encoding': accepted })
  expect(response.headers.get('content-encoding')).toBe(encoding)
  if (encoding) expect(response.headers.get('vary')).toBe('Accept-Encoding')
  const bytes = new Uint8Array(await response.arrayBuffer())
  const text = new TextDecoder().decode(encoding ? Bun.gunzipSync(bytes) : bytes)
  expect(JSON.parse(text).openapi).toBe('3.1.0')
})

test('/openapi.json is sent again only to a client that holds something else', async () => {
  const etagAs = async (encoding: string) => (await ask({ 'accept-encoding': encoding })).headers.get('etag') ?? ''
  for (const encoding of ['identity', 'gzip']) {
    const [etag, wrong] = [await etagAs(encoding), await etagAs(encoding === 'gzip' ? 'identity' : 'gzip')]
    expect(etag).toMatch(/^"[\w-]+"$/)
    for (const held of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const response = await ask({ 'accept-encoding': encoding, 'if-none-match': held })
      expect([response.status, await response.text(), response.headers.get('etag')]).toEqual([304, '', etag])
    }
    for (const held of ['"other"', wrong, etag.slice(1, -1), `"x${etag.slice(1)}`]) {
      expect((await ask({ 'accept-encoding': encoding, 'if-none-match': held })).status).toBe(200)
    }
  }
})
