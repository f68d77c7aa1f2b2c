import { jest } from 'bun:test'

/** An event-loop tick in which sockets are served. */
const tick = () => new Promise(setImmediate)

/** A clock that stands still unless the test moves it: `using _ = standingClock()`. */
export function standingClock(): Disposable {
  jest.useFakeTimers()
  return { [Symbol.dispose]: () => void jest.useRealTimers() }
}

/** Moves the clock, and lets everything happen that is due then. */
export async function advance(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms)
  await settle()
}

/** Lets everything happen that waits for no timer and no other process. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await tick()
}

/** Like `until`, on a clock that stands still. */
export async function eventually<T>(what: string, probe: () => Promise<T | undefined> | T | undefined): Promise<T> {
  // CPU time is not faked. A test that reached its own limit would leave its fake clock to the next one.
  const startedAt = process.cpuUsage()
  for (;;) {
    const answer = await probe()
    if (answer !== undefined) return answer
    if (process.cpuUsage(startedAt).user > 30e6) throw new Error(`Waited for ${what}, which did not happen`)
    await tick()
  }
}
