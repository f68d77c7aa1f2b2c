import { readBytes } from '../client/request.ts'
import { readCode, SetupError } from '../errors.ts'
import { oneOf } from '../field.ts'
import { command } from './command.ts'
import { formatOrigin, settings } from './settings.ts'

/** Longer than the server waits for its store. */
const answerMs = 5_000

export const healthCommand = command({
  name: 'health',
  summary: 'Check whether the server on this machine and its store work; exit code 1 if not',
  options: {
    port: { ...settings.port, help: 'Port of the server' },
    host: { ...settings.host, help: 'Address that the server listens on' },
    tlsCert: { ...settings.tlsCert, help: 'Certificate file of the server, if it speaks HTTPS' },
    check: {
      name: 'check',
      value: 'endpoint',
      help: 'healthz: server and store work; readyz: it accepts requests; livez: it runs, with or without its store',
      default: 'healthz',
      ...oneOf(['healthz', 'readyz', 'livez']),
    },
  },
  details: `It reads the same variables as serve. No API key is needed.
It prints ok, or read-only if the last write failed, the database takes no writes, or the file was
moved. Reads work then, so both are exit code 0.`,
  examples: ['petstore health', 'petstore health --port 9000 --check livez'],
  async run(options, io) {
    const url = `${formatOrigin(options)}/${options.check}`
    const { status, text } = await ask(url)
    const isOurs = /^(ok|read-only|store|draining|starting)$/.test(text)
    if (!isOurs) throw new SetupError(`${url} responds with ${status}: another program may use this port`)
    if (status !== 200) throw new SetupError(`The server is not healthy: ${text}`)
    await io.out(`${text}\n`)
  },
})

async function ask(url: string): Promise<{ readonly status: number; readonly text: string }> {
  try {
    // Bun would send the request to the proxy in HTTP_PROXY, which does not reach this machine's own address.
    process.env['NO_PROXY'] = process.env['no_proxy'] = '*'
    // The certificate names the public host, not this address, and nothing secret is sent.
    const tls = { rejectUnauthorized: false }
    const response = await fetch(url, { signal: AbortSignal.timeout(answerMs), redirect: 'manual', tls })
    const bytes = await readBytes(response)
    return { status: response.status, text: new TextDecoder().decode(bytes).trim() }
  } catch (cause) {
    const why = readCode(cause) || (cause as Error).name
    const advice = 'start the server, or set --host, --port and --tls-cert (HOST, PORT, PETSTORE_TLS_CERT) as it does'
    throw new SetupError(`${url} does not answer (${why}): ${advice}`, { cause })
  }
}
