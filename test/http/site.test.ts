import { afterAll, describe, expect, test } from 'bun:test'
import { startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const ask = (headers: Record<string, string>) => fetch(`${service.origin}/openapi.json`, { headers, decompress: false })

describe('/openapi.json', () => {
  const publicUrl = 'https://pets.example.com/v1'
  const stagingUrl = 'https://staging.example.com/v1'
  const here = { url: '/v1', description: 'This instance' }

  test.each([
    [{}, [here]],
    [
      { publicUrl, stagingUrl },
      [here, { url: publicUrl, description: 'Production' }, { url: stagingUrl, description: 'Staging' }],
    ],
    [{ publicUrl: stagingUrl, stagingUrl }, [here, { url: stagingUrl, description: 'Staging' }]],
  ])('needs no key, and with %j names these servers', async (options, servers) => {
    await using other = await startService(options)
    const { status, json } = await other.call('/openapi.json', { key: null })
    expect([status, json.openapi]).toEqual([200, '3.1.0'])
    expect(json.servers).toEqual(servers)
    expect(json.paths['/pets/{petId}'].get.deprecated).toBe(true)
  })

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

  test.each(['identity', 'br', 'gzip;q=0', 'gzip; q=0.000, br', 'xgzip'])('is plain for "%s"', async encodings => {
    const response = await ask({ 'accept-encoding': encodings })
    expect(response.headers.get('content-encoding')).toBeNull()
    expect(JSON.parse(await response.text()).openapi).toBe('3.1.0')
  })

  test.each(['identity', 'gzip'])('is not sent again to a client that holds it as %s', async encoding => {
    const accepted = { 'accept-encoding': encoding }
    const etag = (await ask(accepted)).headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[\w-]+"$/)
    for (const held of [etag, `W/${etag}`, `"other", ${etag}`, `"a, b",${etag}`, '*']) {
      const response = await ask({ ...accepted, 'if-none-match': held })
      expect([response.status, await response.text(), response.headers.get('etag')]).toEqual([304, '', etag])
    }
  })

  test('is sent again to a client that holds something else', async () => {
    const etag = (await ask({ 'accept-encoding': 'identity' })).headers.get('etag') ?? ''
    const zipped = (await ask({ 'accept-encoding': 'gzip' })).headers.get('etag') ?? ''
    expect(zipped).not.toBe(etag)
    for (const held of ['"other"', zipped, `"${etag}"`, etag.slice(1, -1), `"x${etag.slice(1)}`, '"*"']) {
      expect((await ask({ 'accept-encoding': 'identity', 'if-none-match': held })).status).toBe(200)
    }
  })
})

test('a page that cannot be read is tried again with the next request', async () => {
  let reads = 0
  const page = {
    type: 'text/plain',
    async read() {
      if (++reads === 1) throw new Error('EMFILE')
      return new Uint8Array([0x6f, 0x6b])
    },
  }
  await using other = await startService({ pages: new Map([['/page', page]]) })
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await fetch(`${other.origin}/page`)).status)
  expect([statuses, reads]).toEqual([[500, 200, 200], 2])
})
