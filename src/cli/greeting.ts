// What a server prints at its start.

import { hashSecret, issueApiKey, whyInvalid } from '../api-key.ts'
import { SetupError } from '../errors.ts'
import type { Log } from '../log.ts'
import { isPostgres } from '../store/open.ts'
import type { KeyStore, Stores } from '../store-contract.ts'
import { type Io, shellWord, version } from './output.ts'
import { formatOrigin, type ServeSettings, settings as serveSettings } from './settings.ts'

/** Prints the addresses, a key or how to create one, and curl lines to paste. Creates the first key of a store. */
export async function greet(settings: ServeSettings, { keys, location }: Stores, log: Log, io: Io): Promise<void> {
  const { host, publicUrl, environmentKey, tlsCert } = settings
  const origin = formatOrigin(settings)
  const network = (await networkHosts(host)).map(host => formatOrigin({ ...settings, host }))
  const first = environmentKey === undefined ? await createFirstKey(keys) : undefined
  const hint = first ?? (await keyHint(settings, keys, log, io))
  const lines = [
    `petstore ${version} serves ${origin}/v1 from ${location}\n\n`,
    row('Catalogue', `${origin}/`),
    row('Reference', `${origin}/docs`),
    ...network.map(url => row('Network', `${url}/`)),
    publicUrl === undefined ? '' : row('Public', publicUrl),
    hint.row,
  ]
  const isLocal = /^(127\.|::1$|localhost$)/i.test(host)
  const warning = tlsCert || isLocal ? '' : `\n${clearText}\n`
  const trial = hint.header ? formatTrial(origin, hint.header) : ''
  try {
    await io.out(`${lines.join('')}${warning}${trial}\nStop with Ctrl-C.\n`)
  } catch (cause) {
    if (first) await keys.revoke(first.id, new Date())
    throw new SetupError('Cannot write the address to stdout: check where stdout goes', { cause })
  }
}

const row = (label: string, value: string) => `  ${label.padEnd(9)}  ${value}\n`
const clearText = 'Without TLS, keys travel in the clear: set --tls-cert and --tls-key, or use a proxy with TLS.'

/** The addresses of this machine that others can reach, if the server listens on all of them; `::` includes IPv4. */
async function networkHosts(host: string): Promise<readonly string[]> {
  if (host !== '0.0.0.0' && host !== '::') return []
  const { networkInterfaces } = await import('node:os')
  const all = Object.values(networkInterfaces()).flatMap(addresses => addresses ?? [])
  const isReachable = ({ internal, family, address }: (typeof all)[number]) =>
    !internal && (family === 'IPv4' || host === '::') && !/^(fe[89ab]|169\.254\.)/i.test(address)
  return all.filter(isReachable).map(({ address }) => address)
}

/** Undefined if the store has, or had, a key. */
async function createFirstKey(keys: KeyStore) {
  const { key, record } = issueApiKey({ name: 'first', permission: 'manage', createdAt: new Date() })
  const created = await keys.createFirst(record)
  const shown = row('API key', `${key} (permission manage, shown only this once)`)
  return created && { id: created.id, row: shown, header: `'Authorization: Bearer ${key}'` }
}

/** For a server that creates no key. Warns if the store knows the operator's key: its record decides. */
async function keyHint({ environmentKey, databaseUrl }: ServeSettings, keys: KeyStore, log: Log, io: Io) {
  const known = environmentKey ? await keys.find(hashSecret(environmentKey)) : undefined
  if (known) {
    const access = [known.permission, whyInvalid(known, new Date())].filter(Boolean).join(', ')
    log.write('warn', `PETSTORE_API_KEY is the key "${known.name}" (${access}): its permission in the store applies`)
  }
  if (known || !environmentKey) {
    const isDefault = databaseUrl === (io.env['DATABASE_URL'] || serveSettings.databaseUrl.default)
    // An address may contain a password.
    const flag = ` --database-url ${isPostgres(databaseUrl) ? 'URL' : shellWord(databaseUrl)}`
    return { row: row('New key', `${io.program} keys create --name NAME${isDefault ? '' : flag}`) }
  }
  // The flag takes precedence, and does not set the variable in the shell.
  if (environmentKey !== io.env['PETSTORE_API_KEY']) return { row: row('API key', 'as given by --api-key') }
  return { row: row('API key', '$PETSTORE_API_KEY'), header: '"Authorization: Bearer $PETSTORE_API_KEY"' }
}

/** Lines that list and add animals. */
function formatTrial(origin: string, header: string): string {
  // -k: the certificate may be self-signed.
  const curl = `  curl ${origin.startsWith('https') ? '-k ' : ''}-w '\\n' -H ${header}`
  const url = shellWord(`${origin}/v1/pets`)
  const post = `-H 'Content-Type: application/json' -d '{"name":"Rex","categoryId":7}'`
  return `\nTry it:\n${curl} ${url}\n${curl} ${post} ${url}\n`
}
