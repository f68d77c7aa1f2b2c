import { expect, test } from 'bun:test'
import { RestartingThread } from './writer.ts'

const moduleOf = (code: string) => new URL(`data:text/javascript,${encodeURIComponent(code)}`)

test('a thread that ends again and again starts at once, then with growing pauses, until it is stopped', async () => {
  const messages: string[] = []
  const { promise: enough, resolve } = Promise.withResolvers<void>()
  const thread = new RestartingThread<string, string>({
    module: moduleOf('addEventListener("message", () => process.exit(1))'),
    onStart: () => thread.post('end'),
    onMessage: () => {},
    onEnd: message => void (messages.push(message) === 4 && resolve()),
  })
  thread.start()
  await enough
  thread.stop()
  expect(thread.isRunning).toBe(false)
  const pauses = ['', ' in 100 ms', ' in 200 ms', ' in 400 ms']
  expect(messages).toEqual(pauses.map(pause => `ended; restarting${pause}`))
  await Bun.sleep(500)
  expect(thread.isRunning).toBe(false)
})
