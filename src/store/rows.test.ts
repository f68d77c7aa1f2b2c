import { expect, test } from 'bun:test'
import type { NewPet } from '../pet.ts'
import { fingerprintOf } from './rows.ts'

// Stored with each idempotency key: a new version must find a retry equal to the first attempt.
test.each<[NewPet, string]>([
  [{ name: 'Rex', categoryId: 7n }, '810054ec1f15cbb0c197421e530227c88e5d68cff4f697578080197806c1f620'],
  [{ name: 'Rex', categoryId: 7n, status: 'sold' }, 'a3109de333f55c039457f64b588878efa9b27ce9dca34ebdbda2c0fb1fdf81f9'],
])('the fingerprint of %p never changes', (pet, fingerprint) => {
  expect(fingerprintOf(pet)).toBe(fingerprint)
})
