import { expect, test } from 'bun:test'
import { shownPath } from './observe.ts'

const environmentKey = 'a/key\\from%outside'
const pathIn = (path: string, headers: Record<string, string> = {}) =>
  shownPath(new Request(`http://127.0.0.1${path}`, { headers }), environmentKey)

const stored = `pets_${'x'.repeat(36)}`

test.each([
  ['an ordinary path', '/v1/nothing/here', '/v1/nothing/here'],
  ['a query', '/v1/nothing?api_key=secret', '/v1/nothing'],
  ['a stored key', `/v1/${stored}`, '/v1/…'],
  ['a stored key with its underscore encoded', `/v1/${stored.replace('_', '%5f')}`, '/v1/…'],
  ['a stored key that is encoded twice', `/v1/${stored.replace('_', '%255f')}`, '/v1/…'],
  ['a key of which nobody knows', '/v1/0123456789abcdef/pets', '/v1/…/pets'],
  ['a segment of 15 characters', '/v1/0123456789abcde', '/v1/0123456789abcde'],
  ['the key from the environment, encoded', `/v1/${encodeURIComponent(environmentKey)}/x`, '/v1/…/x'],
  ['the key from the environment, as it is', '/v1/a/key\\from%25outside/x', '/v1/…/x'],
  ['a part of the key before a question mark', '/v1/a/key?x', '/v1/a/key'],
  ['a long part of the key', '/v1/outside/from', '/v1/…/…'],
  ['a part of the key that is encoded twice', '/v1/%256futside', '/v1/…'],
  ['characters that would steer a terminal', '/v1/%1b%5B31m/x', '/v1/…/x'],
  ['a malformed escape', '/v1/%zz/x', '/v1/…/x'],
  ['a very long path', '/a'.repeat(1_000), '/a'.repeat(100)],
])('%s is logged as it should be', (_, path, shown) => {
  expect(pathIn(path)).toBe(shown)
})

test('the key of the request itself is masked, also with a slash in it', () => {
  expect(pathIn('/v1/short/key/x', { authorization: 'Bearer short/key' })).toBe('/v1/…/x')
})

test.each(['', 'Bearer', 'Bearer v1', 'Basic'])(
  'the credential %j, which is no key, changes nothing',
  authorization => {
    expect(pathIn('/v1/nothing', { authorization })).toBe('/v1/nothing')
  },
)
