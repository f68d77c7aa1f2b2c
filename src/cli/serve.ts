import { issueApiKey, type KeyStore } from '../api-key.ts'
import { createApp } from '../http/app.ts'
import { type Listener, listen } from '../http/serve.ts'
import type { PetStore } from '../pet.ts'
import { openStores } from '../store/open.ts'
import type { Stores } from '../store/stores.ts'
import { exitCode, type Io } from './io.ts'
import { type Flags, readServeSettings, type ServeSettings } from './settings.ts'
import { version } from './version.ts'

/** How long a use of a key may go unrecorded, should the process be killed. */
const flushEveryMs = 5_000

/** Keys of creations that are no longer kept are forgotten in steps, so that no step holds up an animal for long. */
const sweepEveryMs = 60_000
const sweptAtOnce = 500

/** Puts the service together, runs it until it is told to stop, and takes it apart again. */
export async function serve(flags: Flags, io: Io): Promise<number> {
  const settings = readServeSettings(flags, io.env)
  const stopRequested = nextStopSignal()
  const onTrouble = (message: string) => io.err(`${new Date().toISOString()} error ${message}\n`)
  const stores = await openStores(settings.databaseUrl, { create: true, onTrouble })
  const logFault = (requestId: string, cause: unknown) => io.err(`${faultLine(requestId, cause)}\n`)
  const app = createApp({ ...stores, ...settings, logFault, version })
  const flush = () => app.flush().catch(cause => logFault('-', cause))
  const flushing = setInterval(flush, flushEveryMs)
  const sweeping = setInterval(
    () => forgetExpired(stores.pets).catch(cause => logFault('-', cause)),
    sweepEveryMs,
  )
  try {
    const listener = listen(app, settings.host, settings.port)
    await io.out(await welcome(settings, listener, stores))
    await stopRequested
    io.err('Stopping\n')
    const cutOff = await listener.stop(settings.drainMs)
    if (cutOff > 0) io.err(`Cut off after the drain time, unanswered: ${cutOff}\n`)
    return exitCode.success
  } finally {
    clearInterval(flushing)
    clearInterval(sweeping)
    await flush()
    await stores.close()
  }
}

async function forgetExpired(pets: PetStore): Promise<void> {
  while ((await pets.forgetExpired(new Date(), sweptAtOnce)) === sweptAtOnce) await Bun.sleep(10)
}

/** Ctrl-C under npm can arrive twice; the second one changes nothing. */
function nextStopSignal(): Promise<void> {
  return new Promise(resolve => {
    process.on('SIGINT', () => resolve())
    process.on('SIGTERM', () => resolve())
  })
}

/** The cause, on lines of its own, under the id that the client was told. */
function faultLine(requestId: string, cause: unknown): string {
  const detail = cause instanceof Error ? cause.stack || String(cause) : String(cause)
  return `${new Date().toISOString()} error request=${requestId} ${detail}`
}

async function welcome(settings: ServeSettings, { port }: Listener, stores: Stores): Promise<string> {
  const address = `http://${reachableHost(settings.host)}:${port}/v1`
  const lines = [`petstore ${version} serves ${address} from ${stores.place}`]
  const curl = (key: string) => `  curl -H ${key} ${address}/pets`
  if (settings.environmentKey !== undefined) {
    lines.push('', 'Try it:', curl('"Authorization: Bearer $PETSTORE_API_KEY"'))
  } else {
    const key = await firstKey(stores.keys)
    if (key === undefined) lines.push('Keys are made with: bin/petstore keys create --name NAME')
    else {
      lines.push('', `The first API key, shown only this once: ${key}`)
      lines.push('', 'Try it:', curl(`'Authorization: Bearer ${key}'`))
    }
  }
  return `${[...lines, '', 'Stop with Ctrl-C.'].join('\n')}\n`
}

/** A key for a store that has never held one, so that a first start can be used at once. */
async function firstKey(keys: KeyStore): Promise<string | undefined> {
  const { key, record } = issueApiKey({ name: 'first', readOnly: false, createdAt: new Date() })
  return (await keys.createFirst(record)) ? key : undefined
}

/** Where a client on this machine reaches a server that listens on `host`. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
