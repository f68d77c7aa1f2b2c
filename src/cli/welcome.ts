import { issueApiKey, type KeyStore } from '../api-key.ts'
import type { Stores } from '../store/stores.ts'
import type { ServeSettings } from './settings.ts'
import { version } from './version.ts'

/** What a person sees first: the address, a first key where the store has never held one, and a line to paste. */
export async function welcome(settings: ServeSettings, port: number, stores: Stores): Promise<string> {
  const origin = `${settings.tls ? 'https' : 'http'}://${reachableHost(settings.host)}:${port}`
  const lines = [`petstore ${version} serves ${origin}/v1 from ${stores.place}`]
  // A certificate that was made for a test is signed by nobody whom curl knows.
  const curl = (key: string) => `  curl ${settings.tls ? '-k ' : ''}-H ${key} ${origin}/v1/pets`
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
