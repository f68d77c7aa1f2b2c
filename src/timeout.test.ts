import { describe, expect, test } from 'bun:test'
import { repeat, withTimeout } from './timeout.ts'

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

describe('repeated work', () => {
  test('never runs twice at once, and not after its end', async () => {
    const running = Promise.withResolvers<undefined>()
    let runs = 0
    const repeated = repeat(1, () => {
      runs += 1
      return running.promise
    })
    await Bun.sleep(50)
    expect(runs).toBe(1)
    repeated[Symbol.dispose]()
    running.resolve(undefined)
    await Bun.sleep(50)
    expect(runs).toBe(1)
  })

  test('waits for the time that it returns, or the usual one', async () => {
    const times = [1, undefined, 60_000]
    using _ = repeat(10, async () => times.shift())
    await Bun.sleep(200)
    expect(times).toEqual([])
    times.push(1)
    await Bun.sleep(50)
    expect(times).toEqual([1])
  })
})
