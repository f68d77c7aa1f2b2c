// What a server prints at its start.

import { hashSecret, issueApiKey, isWellFormedApiKey, type Permission, whyInvalid } from '../api-key.ts'
import { SetupError } from '../errors.ts'
import type { Log } from '../log.ts'
import { isPostgres } from '../store/open.ts'
import type { KeyStore, Stores } from '../store-contract.ts'
import { type Io, shellWord, version } from './output.ts'
import { formatOrigin, type ServeSettings, settings as serveSettings } from './settings.ts'

type Row = readonly [label: string, value: string]

/** Prints the addresses, a key or how to create one, and curl lines to paste. Creates the first key of a store. */
export async function greet(settings: ServeSettings, stores: Stores, log: Log, io: Io): Promise<void> {
  const { keys, location } = stores
  const { host, publicUrl, environmentKey, tlsCert } = settings
  const origin = formatOrigin(settings)
  const network = (await networkHosts(host)).map(host => `${formatOrigin({ ...settings, host })}/`)
  const first = environmentKey === undefined ? await createFirstKey(keys) : undefined
  const permission = environmentKey === undefined ? undefined : await findPermission(environmentKey, keys, log)
  const hint = first ?? keyHint(settings, permission, io)
  const rows: readonly Row[] = [
    ['Catalogue', `${origin}/`],
    ['Reference', `${origin}/docs`],
    ...network.map((url, index): Row => [index === 0 ? 'Network' : '', url]),
    ...(publicUrl === undefined ? [] : [['Public', publicUrl] as const]),
    hint.row,
  ]
  const list = rows.map(([label, value]) => `  ${label.padEnd(9)}  ${value}\n`).join('')
  const warning = tlsCert || loopback.test(host) ? '' : `\n${clearText}\n`
  const serves = `petstore ${version} serves ${origin}/v1 from ${location}`
  try {
    await io.out(`${serves}\n\n${list}${warning}${formatTrial(origin, hint)}\nStop with Ctrl-C.\n`)
  } catch (cause) {
    if (first) await keys.revoke(first.id, new Date())
    throw new SetupError('Cannot write the address to stdout: check where stdout goes', { cause })
  }
}

const loopback = /^(127\.|::1$|localhost$)/i
const clearText = 'Without TLS, keys travel in the clear: set --tls-cert and --tls-key, or use a proxy with TLS.'
const networkHostsMax = 5

/** The addresses of this machine that others can reach, if the server listens on all of them; `::` includes IPv4. */
async function networkHosts(host: string): Promise<readonly string[]> {
  if (host !== '0.0.0.0' && host !== '::') return []
  const { networkInterfaces } = await import('node:os')
  const all = Object.values(networkInterfaces()).flatMap(addresses => addresses ?? [])
  const isReachable = ({ internal, family, address }: (typeof all)[number]) =>
    !internal && (family === 'IPv4' || host === '::') && !/^(fe[89ab]|169\.254\.)/i.test(address)
  return all
    .filter(isReachable)
    .slice(0, networkHostsMax)
    .map(({ address }) => address)
}

/** Which key to use. */
interface KeyHint {
  readonly row: Row
  /** In the syntax of a shell; absent if the key is not known there. */
  readonly header?: string
  readonly isReadOnly?: boolean
}

/** Undefined if the store has, or had, a key. */
async function createFirstKey(keys: KeyStore): Promise<(KeyHint & { readonly id: bigint }) | undefined> {
  const { key, record } = issueApiKey({ name: 'first', permission: 'manage', createdAt: new Date() })
  const created = await keys.createFirst(record)
  const row = ['API key', `${key} (permission manage, shown only this once)`] as const
  return created && { id: created.id, row, header: `'Authorization: Bearer ${key}'` }
}

/** `permission` is that of the operator's own key, if there is one that may use the catalogue. */
function keyHint({ environmentKey, databaseUrl }: ServeSettings, permission: Permission | undefined, io: Io): KeyHint {
  if (permission === undefined) {
    return { row: ['New key', `${io.program} keys create --name NAME${storeFlag(databaseUrl, io)}`] }
  }
  // The flag takes precedence, and does not set the variable in the shell.
  if (environmentKey !== io.env['PETSTORE_API_KEY']) return { row: ['API key', 'as given by --api-key'] }
  const header = '"Authorization: Bearer $PETSTORE_API_KEY"'
  return { row: ['API key', '$PETSTORE_API_KEY'], header, isReadOnly: permission === 'read-only' }
}

/** Lines that list and add animals, if the shell knows a key. */
function formatTrial(origin: string, { header, isReadOnly }: KeyHint): string {
  if (header === undefined) return ''
  // -k: the certificate may be self-signed. The quotes are for shells that take brackets for a pattern.
  const curl = `  curl ${origin.startsWith('https') ? '-k ' : ''}-w '\\n' -H ${header}`
  const url = origin.includes('[') ? `'${origin}/v1/pets'` : `${origin}/v1/pets`
  const post = `-H 'Content-Type: application/json' -d '{"name":"Rex","categoryId":7}'`
  return `\nTry it:\n${curl} ${url}\n${isReadOnly ? '' : `${curl} ${post} ${url}\n`}`
}

/** What the operator's own key may do with animals. Warns if the store knows the key: its record decides. */
async function findPermission(environmentKey: string, keys: KeyStore, log: Log): Promise<Permission | undefined> {
  const known = isWellFormedApiKey(environmentKey) ? await keys.find(hashSecret(environmentKey)) : undefined
  if (!known) return 'manage'
  const refusal = whyInvalid(known, new Date())
  const access = [known.permission, refusal].filter(Boolean).join(', ')
  const what = `the stored key "${known.name}" (${access})`
  log.write('warn', `PETSTORE_API_KEY is ${what}: its permission in the store applies`)
  return known.permission === 'metrics' || refusal ? undefined : known.permission
}

/** The flag with which another command in this shell opens the same store. It never shows a password. */
function storeFlag(url: string, io: Io): string {
  if (url === (io.env['DATABASE_URL'] || serveSettings.databaseUrl.default)) return ''
  if (isPostgres(url)) return ' --database-url URL'
  return ` --database-url ${shellWord(url)}`
}
