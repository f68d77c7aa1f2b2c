import { expect, test } from 'bun:test'
import { targetOf } from './target.ts'

test.each([
  ['http://127.0.0.1:8080/v1/pets', '/v1/pets', ''],
  ['http://127.0.0.1:8080/', '/', ''],
  ['https://pets.example.com/v1/pets?limit=5&status=sold', '/v1/pets', 'limit=5&status=sold'],
  ['http://[::1]:8080/v1/pets', '/v1/pets', ''],
  ['http://a/?a=/v1/pets', '/', 'a=/v1/pets'],
  ['http://a/v1/pets?', '/v1/pets', ''],
  ['http://a/v1/pets??limit=5', '/v1/pets', '?limit=5'],
  ['http://a/v1/pets?next=http://b/c?d', '/v1/pets', 'next=http://b/c?d'],
  ['http://a/v1/pets#top', '/v1/pets', ''],
  ['http://a/v1/pets?limit=5#top', '/v1/pets', 'limit=5'],
  ['http://a/v1#a?b', '/v1', ''],
  ['http://a//b/v1', '//b/v1', ''],
  ['http://a/v1/../pets', '/v1/../pets', ''],
  ['http://a/v1/p%65ts%2F1?status=s%6Fld', '/v1/p%65ts%2F1', 'status=s%6Fld'],
  ['/v1/pets', '/v1/pets', ''],
  ['/v1/pets?limit=5', '/v1/pets', 'limit=5'],
  ['/', '/', ''],
  ['/?a=http://b/c', '/', 'a=http://b/c'],
  ['//a/v1', '//a/v1', ''],
  ['/http://a/b', '/http://a/b', ''],
])('%s has the path %s and the query "%s"', (url, path, query) => {
  expect(targetOf(url)).toEqual({ path, query })
})
