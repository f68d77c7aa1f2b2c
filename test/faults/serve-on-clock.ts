import { spyOn } from 'bun:test'
import { appendFileSync } from 'node:fs'
import { main } from '../../src/cli/main.ts'
import { advance, eventually, settle, standingClock } from '../support/clock.ts'
import { outputFile } from '../support/process.ts'

/**
 * `petstore serve` in this process, on a clock that stands still unless the test moves it. One at a time:
 * `await using served = await serveOnClock(…)`.
 */
export async function serveOnClock(env: Record<string, string>, ...flags: string[]) {
  await using stack = new AsyncDisposableStack()
  stack.use(standingClock())
  stack.use(
    spyOn(process, 'exit').mockImplementation(code => {
      throw new Error(`exit ${code}`)
    }),
  )
  const signals = ['SIGINT', 'SIGTERM'] as const
  const before = new Set(signals.flatMap(signal => process.listeners(signal)))
  stack.defer(() => {
    for (const signal of signals) {
      for (const each of process.listeners(signal)) if (!before.has(each)) process.off(signal, each)
    }
  })
  const output = outputFile('petstore')
  let stdout = ''
  let exitCode: number | undefined
  const served = {
    stderr: '',
    url: '',
    port: 0,
    /** Moves the clock, and gives the exit code if it has ended. */
    async advance(ms: number): Promise<number | undefined> {
      await advance(ms)
      return exitCode
    },
    async signal(): Promise<void> {
      process.emit('SIGTERM')
      await settle()
    },
    ended: () => eventually('the end', () => exitCode),
    [Symbol.asyncDispose]: async () => {},
  }
  const io = {
    env,
    program: 'petstore',
    isTerminal: false,
    isStyled: false,
    async out(text: string) {
      stdout += text
    },
    err(text: string) {
      served.stderr += text
      appendFileSync(output, text)
    },
  }
  const end = (code: number) => {
    exitCode = code
  }
  main(['serve', '--port', '0', ...flags], io).then(end, error => {
    io.err(`${error}`)
    end(1)
  })
  stack.defer(async () => {
    await served.signal()
    while (exitCode === undefined) await served.advance(100)
  })
  served.url = await eventually('the address', () => {
    if (exitCode !== undefined) throw new Error(`It ended before it served: ${served.stderr}`)
    return / serves (\S+) [\s\S]*Ctrl-C/.exec(stdout)?.[1]
  })
  served.port = Number(new URL(served.url).port)
  const owned = stack.move()
  return Object.assign(served, { [Symbol.asyncDispose]: () => owned.disposeAsync() })
}
