import { describe, expect, test } from 'bun:test'
import { withTimeout } from './timeout.ts'

const never = new Promise<never>(() => {})

describe('a promise with a time-out', () => {
  test('gives its outcome if it settles in time', async () => {
    expect(await withTimeout(Promise.resolve(1), 60_000, () => 2)).toBe(1)
    await expect(withTimeout(Promise.reject(new Error('failed')), 60_000, () => 2)).rejects.toThrow('failed')
  })

  test('gives the outcome of the late function after that time', async () => {
    const startedMs = performance.now()
    expect(await withTimeout(never, 50, () => 2)).toBe(2)
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(45)
    const late = () => {
      throw new Error('too late')
    }
    await expect(withTimeout(never, 1, late)).rejects.toThrow('too late')
  })

  test('leaves no timer behind, so that a program can end', () => {
    const script = `
      const { withTimeout } = await import('./src/timeout.ts')
      await withTimeout(Promise.resolve(), 30_000, () => {})`
    const options = { cwd: `${import.meta.dir}/..`, timeout: 4_000 }
    const { exitCode } = Bun.spawnSync([process.execPath, '-e', script], options)
    expect(exitCode).toBe(0)
  })
})
