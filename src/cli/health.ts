import { SetupError } from '../errors.ts'
import { command } from './arguments.ts'
import { codeOf } from './output.ts'
import { originOf, settings } from './settings.ts'

/** Longer than the server waits for its store. */
const answerMs = 5_000

export const healthCommand = command({
  name: 'health',
  summary: 'Ask the server on this machine whether it is ready: exit code 0 or 1',
  options: { port: settings.port, host: settings.host, tlsCert: settings.tlsCert },
  details: 'It asks /readyz, with the same variables as serve. No API key is needed.',
  examples: ['petstore health', 'petstore health --port 9000'],
  async run(options, _, io) {
    const url = `${originOf(options)}/readyz`
    const { status, text } = await ask(url)
    // Another program on the port would answer something else.
    if (status !== 200 || !['ok', 'read-only'].includes(text)) {
      throw new SetupError(`${url} is not ready: ${status} ${status === 503 ? text : ''}`.trimEnd())
    }
    await io.out(`${text}\n`)
    return undefined
  },
})

async function ask(url: string): Promise<{ readonly status: number; readonly text: string }> {
  try {
    // The certificate names the public host, not this address, and nothing secret is sent.
    const tls = { rejectUnauthorized: false }
    const response = await fetch(url, { signal: AbortSignal.timeout(answerMs), redirect: 'manual', tls })
    return { status: response.status, text: (await response.text()).trim() }
  } catch (cause) {
    const why = codeOf(cause) || (cause as Error).name
    throw new SetupError(`${url} does not answer (${why}): start the server, or set HOST and PORT as it does`, {
      cause,
    })
  }
}
