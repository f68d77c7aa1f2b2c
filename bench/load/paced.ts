import { benchKey } from './load.ts'

export interface Paced {
  readonly p99Ms: number
  readonly failures: number
}

/** What a page that refreshes itself does: each connection asks once in `everyMs`, whatever the others do. */
export async function readPaced(
  url: string,
  connections: number,
  everyMs: number,
  seconds: number,
): Promise<Paced> {
  const latenciesMs: number[] = []
  let failures = 0
  const end = performance.now() + seconds * 1_000

  async function reader(delayMs: number): Promise<void> {
    await Bun.sleep(delayMs)
    for (let due = performance.now(); due < end; due += everyMs) {
      await Bun.sleep(Math.max(0, due - performance.now()))
      const sent = performance.now()
      const response = await fetch(url, { headers: { authorization: `Bearer ${benchKey}` } })
      await response.arrayBuffer()
      latenciesMs.push(performance.now() - sent)
      if (!response.ok) failures++
    }
  }

  await Promise.all(Array.from({ length: connections }, (_, i) => reader((i * everyMs) / connections)))
  const sorted = latenciesMs.toSorted((a, b) => a - b)
  return { p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN, failures }
}
