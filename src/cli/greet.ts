import { issueApiKey } from '../api-key.ts'
import { SetupError } from '../errors.ts'
import type { KeyStore, Stores } from '../store.ts'
import type { Io } from './io.ts'
import type { ServeSettings } from './settings.ts'
import { version } from './version.ts'

/** What a person sees first: the address, a first key where the store has never held one, and a line to paste. */
export async function greet(settings: ServeSettings, port: number, stores: Stores, io: Io): Promise<void> {
  const first = settings.environmentKey === undefined ? await firstKey(stores.keys) : undefined
  try {
    await io.out(greeting(settings, port, stores.location, first?.key))
  } catch (cause) {
    if (first) await stores.keys.revoke(first.id, new Date())
    throw new SetupError('Cannot write to stdout: nobody would know the address', { cause })
  }
}

function greeting(
  settings: ServeSettings,
  port: number,
  place: string,
  firstKey: string | undefined,
): string {
  const origin = `${settings.tls ? 'https' : 'http'}://${reachableHost(settings.host)}:${port}`
  // A certificate that was made for a test is signed by nobody whom curl knows.
  const curl = (header: string) => `  curl ${settings.tls ? '-k ' : ''}-H ${header} ${origin}/v1/pets`
  const lines = [`petstore ${version} serves ${origin}/v1 from ${place}`]
  if (settings.environmentKey !== undefined) {
    lines.push('', 'Try it:', curl('"Authorization: Bearer $PETSTORE_API_KEY"'))
  } else if (firstKey !== undefined) {
    lines.push('', `The first API key, shown only this once: ${firstKey}`)
    lines.push('', 'Try it:', curl(`'Authorization: Bearer ${firstKey}'`))
  } else lines.push('Keys are made with: bin/petstore keys create --name NAME')
  return `${[...lines, '', 'Stop with Ctrl-C.'].join('\n')}\n`
}

/** A key for a store that has never held one, so that a first start can be used at once. */
async function firstKey(keys: KeyStore): Promise<{ readonly id: bigint; readonly key: string } | undefined> {
  const { key, record } = issueApiKey({ name: 'first', permission: 'read-write', createdAt: new Date() })
  const created = await keys.createFirst(record)
  return created && { id: created.id, key }
}

/** Where a client on this machine reaches a server that listens on `host`. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
