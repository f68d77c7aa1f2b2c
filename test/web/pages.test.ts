import { describe, expect, test } from 'bun:test'
import { createPages } from '../../src/web/pages.ts'
import { startService } from '../support/service.ts'

const pages = createPages()

describe('the pages as files', () => {
  test('the whole catalogue is under 30 KB, uncompressed', async () => {
    const files = [...pages].filter(([path]) => !path.startsWith('/docs'))
    expect(files.map(([path]) => path).sort()).toEqual([
      '/',
      '/catalogue-view.js',
      '/catalogue-wire.js',
      '/catalogue.css',
      '/catalogue.js',
      '/favicon.svg',
    ])
    const sizes = await Promise.all(files.map(async ([, page]) => (await page.read()).length))
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(30_000)
  })

  test('every page has a policy that lets in nothing from elsewhere and no inline script', async () => {
    await using service = await startService({ pages })
    for (const path of pages.keys()) {
      const { status, headers } = await fetch(service.origin + path, { method: 'HEAD' })
      expect([path, status, headers.get('referrer-policy')]).toEqual([path, 200, 'no-referrer'])
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'")
      expect(policy).toContain(
        "; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      )
      expect(policy).not.toMatch(/unsafe|https?:|\*/)
    }
  })
})
