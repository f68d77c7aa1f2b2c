import { describe, expect, test } from 'bun:test'
import { loggedPath, requestId } from './masking.ts'
import { RequestContext, splitUrl } from './request.ts'

describe('a request id', () => {
  const generated = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
  const key = 'a-key-from-outside-0123456789'

  test.each([
    ...['a', '7', '123e4567-e89b-42d3-a456-426614174000', 'Root=1-67891233-abcdef012345678912345678'],
    ...['trace/span:7@host~1.2_3+x==', 'x'.repeat(128)],
  ])('%s of the client is used', id => {
    expect(requestId(id, 'Bearer a7x', undefined)).toBe(id)
  })

  test.each([
    ...['', 'a b', ' a', 'a\n', 'a\r\nSet-Cookie: b=c', 'a\tb', 'a\u0000', '"a"', 'a,b', 'a;b', '<script>'],
    ...['$(id)', '%0a', 'é', '😀', '\u001b[31m', 'x'.repeat(129)],
  ])('%j is unsafe and is replaced', id => {
    expect(requestId(id, 'Bearer a7x', undefined)).toMatch(generated)
  })

  test('is generated for each request without one', () => {
    expect(requestId(null, null, undefined)).toMatch(generated)
    expect(requestId(null, null, undefined)).not.toBe(requestId(null, null, undefined))
  })

  const idOf = (sent: string, authorization: string, environmentKey: string | undefined) => {
    const headers = { 'x-request-id': sent, ...(authorization && { authorization }) }
    return new RequestContext(new Request('http://a/', { headers }), environmentKey).id
  }
  const slashed = 'first-part/second-part'

  test.each<[string, string, string, string | undefined]>([
    ['the sent key after several spaces', key, `Bearer   ${key}`, undefined],
    ['the sent key after a tab', key, `Bearer\t${key}`, undefined],
    ['a key that was sent without a scheme', key, key, undefined],
    ['12 characters of the sent key inside other text', `id=${key.slice(3, 15)}.`, `Bearer ${key}`, undefined],
    ['the last 12 characters of the sent key', `id=${key.slice(-12)}`, `Bearer ${key}`, undefined],
    ['a sent key with a slash between letters', `a${slashed}b`, `Bearer ${slashed}`, undefined],
    ['the end of the first 300 characters', 'y'.repeat(12), `Bearer ${'x'.repeat(288)}${'y'.repeat(90)}`, undefined],
    ['the environment key inside other text', `id=${key}.`, 'Bearer another', key],
    ['the start of a stored key', `id=pets_${'x'.repeat(12)}`, '', undefined],
  ])('never repeats %s', (_what, id, authorization, environmentKey) => {
    expect(idOf(id, authorization, environmentKey)).toMatch(generated)
  })

  test.each<[string, string, string, string | undefined]>([
    ['11 characters of the sent key', key.slice(3, 14), `Bearer ${key}`, undefined],
    ['a part of the environment key, which would confirm a guess', key.slice(1), 'Bearer another', key],
    ['the key of another request', key, 'Bearer another-key-altogether', undefined],
    ['11 characters of a stored key', `pets_${'x'.repeat(11)}`, '', undefined],
    ['what follows 300 characters of a token', 'y'.repeat(12), `Bearer ${'x'.repeat(289)}${'y'.repeat(90)}`, undefined],
  ])('may be %s', (_what, id, authorization, environmentKey) => {
    expect(idOf(id, authorization, environmentKey)).toBe(id)
  })
})

describe('a path in the log', () => {
  const environmentKey = 'a/key\\from%41outside'
  const stored = `pets_${'x'.repeat(36)}`
  /** As it arrives: a URL's backslashes become slashes. */
  const logged = (path: string) => loggedPath(splitUrl(new Request(`http://127.0.0.1${path}`).url).path, environmentKey)

  test.each([
    ['the root', '/', '/'],
    ['an empty segment', '/v1//pets/', '/v1//pets/'],
    ['every character that stays', '/AZaz09._~-', '/AZaz09._~-'],
    ['a stored key', `/v1/${stored}`, '/v1/…'],
    ['a stored key that is encoded twice', `/v1/${stored.replace('_', '%255f')}`, '/v1/…'],
    ['an unknown key', '/v1/0123456789abcdef/pets', '/v1/…/pets'],
    ['a segment of 15 characters', '/v1/0123456789abcde', '/v1/0123456789abcde'],
    ['encoded letters', '/v1/%41%7e', '/v1/A~'],
    ['other characters', '/v1/a!/x', '/v1/…/x'],
    ['the environment key, encoded', `/v1/${encodeURIComponent(environmentKey)}/x`, '/v1/…/x'],
    ['the environment key, not encoded', `/v1/${environmentKey}/x`, '/v1/…/x'],
    ['a part of the environment key', '/v1/a/key?x', '/v1/a/key'],
    ['a malformed escape', '/v1/%zz/x', '/v1/…/x'],
    ['10 segments', '/a'.repeat(10), '/a'.repeat(10)],
    ['11 segments', '/a'.repeat(11), `${'/a'.repeat(10)}/…`],
    ['thousands of segments', '/'.repeat(7_900), `${'/'.repeat(11)}…`],
    ['a segment that is cut', `/v1/${'x%'.repeat(90)}/0123456789abcdef`, '/v1/…/…'],
    ['the environment key at the limit', `${'/x%'.repeat(65)}/${environmentKey}`, `${'/…'.repeat(11)}`],
    ['the environment key across the limit', `/${'x'.repeat(180)}/x${environmentKey}`, '/…/…'],
    ['the environment key behind itself', `/${environmentKey.repeat(20)}/a`, '/…'],
    ['a segment that begins after 200 characters', `/v1/${'x%'.repeat(100)}/a`, '/v1/…'],
  ])('%s is logged without a key', (_what, path, shown) => {
    expect(logged(path)).toBe(shown)
  })
})
