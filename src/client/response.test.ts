import { expect, test } from 'bun:test'
import { readRateLimit } from './headers.ts'
import { responseOf } from './index.ts'

const policy = '"default";q=100;w=60'
const state = '"default";r=42;t=7'
const rateLimit = { limit: 100, windowSeconds: 60, remaining: 42, resetSeconds: 7 }

test.each<[string, string]>([
  [policy, state],
  ['"a"; w=60; q=100; x="y"', '"a"; t=7; r=42'],
  ['"a";qu="req";q=100;w=60', '"a";x=";r=1, ";r=42;t=7'],
  ['"";q=100;w=60, "b";q=1;w=1', '"";r=42;t=7, "b";r=1;t=1'],
])('RateLimit-Policy: %s and RateLimit: %s are the rate limit', (policy, state) => {
  expect(readRateLimit(new Headers({ 'ratelimit-policy': policy, ratelimit: state }))).toEqual(rateLimit)
})

test.each<[string | null, string | null]>([
  [null, null],
  [policy, null],
  [null, state],
  [policy, '"default";r=42'],
  [policy, '"default";t=7, "b";r=42'],
  [policy, '"default";r=-1;t=7'],
  [policy, '"default";r=4.2;t=7'],
  [policy, '"r=42;t=7"'],
  [policy, 'limit=100, remaining=42, reset=7'],
  ['"default";q=;w=60', state],
  ['100', '42'],
])('RateLimit-Policy: %s and RateLimit: %s are no rate limit', (policy, state) => {
  const headers = Object.entries({ 'ratelimit-policy': policy, ratelimit: state }).filter(([, value]) => value !== null)
  expect(readRateLimit(new Headers(headers as [string, string][]))).toBeUndefined()
})

test('an object that is not from the client has no response', () => {
  expect(responseOf({})).toBeUndefined()
})
