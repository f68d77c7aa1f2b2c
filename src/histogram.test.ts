import { expect, test } from 'bun:test'
import { Histogram } from './histogram.ts'

test('a value counts in the first bucket whose bound it does not exceed', () => {
  const histogram = new Histogram([1, 2, 4])
  expect(histogram.counts).toEqual([0, 0, 0, 0])
  for (const value of [0, 1, 1.5, 2, 4, 4.1, 100]) histogram.observe(value)
  expect(histogram.counts).toEqual([2, 2, 1, 2])
  expect(histogram.sum).toBeCloseTo(112.6)
})
